import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// Reading apps.lua, and the problems of invalid apps with their lines.
@Suite struct AppReadingTests {
  private static let mobile = """
    return apps {
      mobile = app {
        name = "Wallet",
        public = true,
        redirect_uris = { "https://app.example.com/in", "com.example.app:/in", "http://127.0.0.1/in" },
      },
      ["desk.top-1"] = app { public = true, redirect_uris = { "http://localhost/desk" }, consent = "always" },
    }
    """

  private static func one(_ body: String) -> String { "return apps {\n  mobile = app {\n\(body)\n  },\n}" }

  @Test func appsAreRead() throws {
    let apps = try TestFolder(["apps.lua": Self.mobile]).generation().apps
    #expect(apps.apps.map(\.id) == ["desk.top-1", "mobile"])
    let mobile = try #require(apps["mobile"])
    #expect(mobile.name == "Wallet" && mobile.consent == .once)
    #expect(
      mobile.redirectURIs.map(\.text) == [
        "https://app.example.com/in", "com.example.app:/in", "http://127.0.0.1/in",
      ])
    let desktop = try #require(apps["desk.top-1"])
    #expect(desktop.name == "desk.top-1" && desktop.consent == .always)
    #expect(apps.app(receivingAt: "http://127.0.0.1:4567/in")?.id == "mobile")
    // The gateway's own origin, although loopback addresses match with any port.
    #expect(apps.app(receivingAt: "http://localhost:8080/desk") == nil)
    #expect(apps.app(receivingAt: "http://localhost:8081/desk")?.id == "desk.top-1")
  }

  @Test func withoutTheFileThereAreNoApps() throws { #expect(try TestFolder().generation().apps.apps.isEmpty) }

  static let mistakes: [(text: String, problem: String)] = [
    ("return routes {}", "apps.lua: must return apps { … }, but returns `routes`"),
    ("return apps { { public = true } }", "apps.lua:1: a table is not a field; write fields as `name = value`"),
    (
      "return apps {\n  mobile = { public = true },\n}",
      "apps.lua:2: mobile: must be an app, as in mobile = app { public = true, redirect_uris = { \"com.example.app:/in\" } }, not a table"
    ),
    (
      "return apps {\n  [\"my app\"] = app { public = true, redirect_uris = { \"com.example.app:/in\" } },\n}",
      "apps.lua:2: my app: is not a valid client id: use at most 64 letters, digits, `.`, `_` and `-`, beginning with a letter or digit"
    ),
    (
      one("public = true, redirect_uris = { \"com.example.app:/in\" },\nscope = { \"openid\" },"),
      "apps.lua:4: mobile.scope: unknown field; did you mean `scopes`? (the scopes that it may ask for: by default `openid`, `profile`, `email` and `groups`; more are `phone`, `offline_access` and names of your own)"
    ),
    (
      one("redirect_uris = { \"com.example.app:/in\" },"),
      "apps.lua:2: mobile: says no way to authenticate: write secret = file \"secrets/mobile\", keys = \"https://…\" or public = true"
    ),
    (
      one("public = false, redirect_uris = { \"com.example.app:/in\" },"),
      "apps.lua:3: mobile.public: must be true: an app with a secret or keys omits `public`"
    ),
    (
      one("public = true,"),
      "apps.lua:2: mobile.redirect_uris: is missing: the addresses that receive codes, compared exactly, as in { \"https://app.example.com/in\" }"
    ),
    (
      one("public = true, redirect_uris = {},"),
      "apps.lua:3: mobile.redirect_uris: must list at least one address, such as \"https://app.example.com/in\""
    ),
    (
      one("public = true, redirect_uris = { \"com.example.app:/in\" }, consent = \"sometimes\","),
      "apps.lua:3: mobile.consent: \"sometimes\" is not known; available: `always`, `never` and `once`"
    ),
    (
      one("public = true, redirect_uris = { \"com.example.app:/in\" }, name = \" \","),
      "apps.lua:3: mobile.name: must be a name that users recognise, in one line of at most 100 characters"
    ),
    (
      one("public = true, redirect_uris = {\n\"https://app.example.com/in\",\n\"https://app.example.com/in#x\" },"),
      "apps.lua:5: mobile.redirect_uris[2]: \"https://app.example.com/in#x\" has a fragment: remove the `#` and what follows it"
    ),
    (
      one("public = true, redirect_uris = { \"https://*.example.com/in\" },"),
      "apps.lua:3: mobile.redirect_uris[1]: \"https://*.example.com/in\" has a wildcard, but redirect URIs are compared exactly: list each address"
    ),
    (
      one("public = true, redirect_uris = { \"http://app.example.com/in\" },"),
      "apps.lua:3: mobile.redirect_uris[1]: \"http://app.example.com/in\" uses http, which others can read on the way: write https, or an address of the user's own machine"
    ),
    (
      one("public = true, redirect_uris = { \"https:///in\" },"),
      "apps.lua:3: mobile.redirect_uris[1]: \"https:///in\" has no valid host, as in \"https://app.example.com/in\""
    ),
    (
      one("public = true, redirect_uris = { \"myapp:/in\" },"),
      "apps.lua:3: mobile.redirect_uris[1]: \"myapp:/in\" has the scheme `myapp:`; write https, or a private scheme with a dot, such as \"com.example.app:/in\""
    ),
    (
      one("public = true, redirect_uris = { \"http://localhost:8080/in\" },"),
      "apps.lua:3: mobile.redirect_uris[1]: \"http://localhost:8080/in\" is on `public_url`, the gateway's own origin: write an address of the app"
    ),
    (
      "return apps {\n  a = app { public = true, redirect_uris = { \"http://localhost:1/in\" } },\n  b = app { public = true, redirect_uris = { \"http://localhost:2/in\" } },\n}",
      "apps.lua:3: b.redirect_uris[1]: \"http://localhost:2/in\" is also an address of `a`: give each public app addresses of its own"
    ),
  ]

  @Test(arguments: mistakes) func mistake(text: String, problem: String) throws {
    #expect(try TestFolder(["apps.lua": text]).problems() == [problem])
  }

  /// Programs on the user's machine have fixed addresses: two clusters of Kubernetes, each with a client id of its own.
  @Test func appsThatTakeNoFlowsMayShareAnAddress() throws {
    let text = """
      return apps {
        blue = app { public = true, redirect_uris = { "http://localhost:8000" }, require = { group = "ops" } },
        green = app { public = true, redirect_uris = { "http://localhost:8000" }, require = { group = "ops" } },
        flows = app { public = true, redirect_uris = { "http://localhost:8000" } },
      }
      """
    let apps = try TestFolder([
      "apps.lua": text, "accounts.lua": "return accounts { groups = { ops = members() } }",
    ]).generation().apps
    #expect(apps.apps.count == 3 && apps.app(receivingAt: "http://localhost:8000")?.id == "flows")
  }

  /// An app that demands what its users cannot do.
  @Test(
    arguments: [
      (
        "passed = \"phone_otp\"", nil,
        "passed: sends users who have not passed `phone_otp` to the flow `step_up`, but flows/step_up.lua does not exist: they could never get access"
      ),
      (
        "passed = \"phone_otp\"", "{ \"email_code\" }",
        "passed: sends users who have not passed `phone_otp` to the flow `step_up`, which has no step of it: they could never get access"
      ),
      ("passed = \"phone_otp\"", "any_of { \"email_code\", \"phone_otp\" }", nil),
      (
        "factors = 9", "{ \"email_code\" }",
        "factors: requires 9 factors, but no sign-in passes as many, also with the flow `step_up`: users could never get access"
      ),
      ("factors = 2", "{ \"email_code\" }", nil),
    ] as [(String, String?, String?)])
  func anAppThatNobodyReaches(_ requirement: String, _ steps: String?, _ warning: String?) throws {
    let folder = try TestFolder([
      "apps.lua": Self.one(
        "public = true, redirect_uris = { \"com.example.app:/in\" },\nrequire = { \(requirement) },"),
      "flows/step_up.lua": steps.map {
        "return flow \"step_up\" { purpose = \"step_up\", account = \"existing\", steps = { \($0) } }"
      },
    ])
    #expect(
      try folder.generation().warnings.map(\.description)
        == (warning.map { ["apps.lua:4: mobile.require.\($0)"] } ?? []))
  }

  @Test func misspelledFileIsReported() throws {
    let generation = try TestFolder(["app.lua": Self.mobile]).generation()
    #expect(generation.warnings.map(\.description) == ["app.lua: is not read; did you mean `apps.lua`?"])
  }

  /// RFC 9700 section 2.1: who may receive codes is a change that an operator sees before it is active.
  @Test func differencesAreListed() throws {
    let old = try TestFolder().generation()
    let new = try TestFolder(["apps.lua": Self.mobile]).generation()
    let other = try TestFolder([
      "apps.lua": Self.mobile.replacing("com.example.app:/in", with: "com.example.app:/back")
    ]).generation()
    let changes = { (old: any PolicyGeneration, new: any PolicyGeneration) in
      SettingsDiff(old: old, new: new, providers: .none).changes
        .map { "\($0.of) \($0.place) \($0.path): \($0.old ?? "nothing") → \($0.new ?? "nothing")" }
    }
    #expect(
      changes(old, new).contains(
        "apps apps.lua:7 desk.top-1.redirect_uris: nothing → { \"http://localhost/desk\" }"))
    #expect(changes(new, new) == [])
    #expect(
      changes(new, other) == [
        "apps apps.lua:5 mobile.redirect_uris: { \"https://app.example.com/in\", \"com.example.app:/in\", \"http://127.0.0.1/in\" } → { \"https://app.example.com/in\", \"com.example.app:/back\", \"http://127.0.0.1/in\" }"
      ])
  }
}
