import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// The settings of apps that sign their users in with OpenID Connect, and the problems of invalid ones.
@Suite struct AppSettingsTests {
  private static let secret = "3q2-7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
  private static let redirect = "redirect_uris = { \"https://grafana.example.com/in\" },"

  private static func apps(_ body: String, _ id: String = "grafana") -> String {
    "return apps {\n  \(id) = app {\n\(body)\n  },\n}"
  }

  private static func folder(_ text: String, _ files: [String: String?] = [:]) throws -> TestFolder {
    try TestFolder(
      [
        "apps.lua": text, "secrets/grafana": secret,
        "accounts.lua": "return accounts { groups = { staff = members() } }",
      ]
      .merging(files) { $1 })
  }

  @Test func everySettingIsRead() throws {
    let generation = try Self.folder(
      Self.apps(
        """
        name = "Grafana", secret = file "secrets/grafana",
        redirect_uris = { "https://grafana.example.com/in" }, sign_out_uris = { "https://grafana.example.com/" },
        sign_out_notice = "https://grafana.example.com/backchannel",
        require = { group = "staff", passed = "phone_otp", within = "15m", factors = 2 },
        decide = function(f) return allow end,
        scopes = { "openid", "offline_access", "grafana:edit" },
        claims = function(f) return { role = "Viewer" } end,
        consent = "always", grants = { "authorization_code", "refresh_token", "device_code", "client_credentials" },
        signing = "EdDSA", access_token = "jwt", audience = { "https://api.example.com" },
        lifetimes = { id_token = "1m", access_token = "2m", refresh_token = "3d" },
        pkce = "optional", subject = "pairwise",
        """)
    ).generation()
    let app = try #require(generation.apps["grafana"])
    #expect(app.name == "Grafana" && app.authentication == .secret(SecretText(Self.secret)))
    #expect(app.signOutURIs.map(\.text) == ["https://grafana.example.com/"])
    #expect(app.signOutNotice == "https://grafana.example.com/backchannel")
    #expect(
      app.requirement
        == AppRequirement(
          groups: GroupRequirement(anyOf: [try #require(GroupName(rawValue: "staff"))]),
          steps: [.passed("phone_otp", within: .seconds(900))], factors: 2))
    #expect(app.decide == FunctionName("apps.grafana.decide") && app.claims == FunctionName("apps.grafana.claims"))
    #expect(app.scopes == ["openid", "offline_access", "grafana:edit"])
    #expect(app.consent == .always && app.grants == Set(GrantType.allCases) && app.signing == .edDSA)
    #expect(app.accessToken == .jwt(audience: ["https://api.example.com"]))
    #expect(
      app.lifetimes
        == AppLifetimes(idToken: .seconds(60), accessToken: .seconds(120), refreshToken: .seconds(3 * 86_400)))
    #expect(app.pkceIsOptional && app.isPairwise)
    #expect(generation.secretFiles.count == 1)
  }

  @Test func defaultsDependOnTheSecret() throws {
    let generation = try Self.folder(
      """
      return apps {
        grafana = app { secret = file "secrets/grafana", redirect_uris = { "https://grafana.example.com/in" } },
        cli = app { public = true, grants = { "device_code", "refresh_token" } },
        batch = app { keys = "https://batch.example.com/keys", grants = { "client_credentials" }, scopes = { "jobs" } },
      }
      """
    ).generation()
    let grafana = try #require(generation.apps["grafana"])
    #expect(grafana.consent == .never && grafana.scopes == AppScope.standard && !grafana.pkceIsOptional)
    #expect(grafana.grants == [.authorizationCode, .refreshToken] && grafana.signing == .rs256)
    #expect(grafana.accessToken == .opaque && grafana.lifetimes == AppLifetimes() && grafana.requirement.isEmpty)
    let cli = try #require(generation.apps["cli"])
    #expect(cli.consent == .once && cli.redirectURIs.isEmpty && cli.grants == [.deviceCode, .refreshToken])
    #expect(generation.apps["batch"]?.authentication == .keys("https://batch.example.com/keys"))
    #expect(generation.apps["batch"]?.consent == .never)
  }

  struct Mistake: Sendable, CustomTestStringConvertible {
    let body: String
    let problem: String
    var testDescription: String { problem }

    init(_ body: String, _ problem: String) {
      self.body = body
      self.problem = problem
    }
  }

  private static let plain = "secret = file \"secrets/grafana\", \(redirect)"

  static let mistakes: [Mistake] = [
    Mistake(
      "\(redirect)\nsecret = \"hunter2\",",
      "4: grafana.secret: must be a secret: use env \"NAME\", file \"path\" or credential \"name\" instead of the value itself"
    ),
    Mistake(
      "\(redirect)\nsecret = file \"secrets/other\",",
      "4: grafana.secret: secrets/other: the file does not exist; write a new secret into it with `moongate app secret grafana`"
    ),
    Mistake("\(redirect)\nsecret = file \"secrets/empty\",", "4: grafana.secret: secrets/empty is empty"),
    Mistake(
      "\(redirect)\nsecret = env \"GRAFANA_SECRET\",",
      "4: grafana.secret: the environment variable is missing: GRAFANA_SECRET. Set it before the gateway starts"),
    Mistake(
      "\(plain)\npublic = true,",
      "4: grafana.public: is a second way to authenticate beside `secret`: remove one of the two"),
    Mistake(
      "\(redirect)\nkeys = \"https://grafana.example.com/keys\",\npublic = true,",
      "5: grafana.public: is a second way to authenticate beside `keys`: remove one of the two"),
    Mistake(
      "\(redirect)\nkeys = \"http://grafana.example.com/keys\",",
      "4: grafana.keys: \"http://grafana.example.com/keys\" uses http, which others can read on the way: write https, or an address of the user's own machine"
    ),
    Mistake(
      "\(redirect)\nkeys = \"com.example.app:/keys\",",
      "4: grafana.keys: \"com.example.app:/keys\" is not an https address, such as \"https://app.example.com/…\""),
    Mistake(
      "public = true, \(redirect)\ngrants = { \"client_credentials\", \"authorization_code\" },",
      "4: grafana.grants: a public app cannot use `client_credentials`: it has nothing to prove who it is. Give it a secret or keys"
    ),
    Mistake(
      "\(plain)\ngrants = { \"password\" },",
      "4: grafana.grants: \"password\" is not known; available: `authorization_code`, `client_credentials`, `device_code` and `refresh_token`"
    ),
    Mistake(
      "\(plain)\ngrants = {},", "4: grafana.grants: must list at least one grant, such as \"authorization_code\""),
    Mistake(
      "\(plain)\ngrants = { \"client_credentials\" },\nrequire = { group = \"staff\" },",
      "5: grafana.require: applies to users, but `client_credentials` alone has none: remove it, or add the grant `authorization_code`"
    ),
    Mistake(
      "\(plain)\ngrants = { \"client_credentials\", \"refresh_token\" },",
      "4: grafana.grants: `refresh_token` has no use without `authorization_code` or `device_code`: add one of them"),
    Mistake(
      "secret = file \"secrets/grafana\",",
      "2: grafana.redirect_uris: is missing: the addresses that receive codes, compared exactly, as in { \"https://app.example.com/in\" }"
    ),
    Mistake(
      "\(plain)\nsign_out_uris = { \"http://localhost:8080/bye\" },",
      "4: grafana.sign_out_uris[1]: \"http://localhost:8080/bye\" is on `public_url`, the gateway's own origin: write an address of the app"
    ),
    Mistake(
      "\(plain)\nsign_out_uris = { \"https://grafana.example.com/#x\" },",
      "4: grafana.sign_out_uris[1]: \"https://grafana.example.com/#x\" has a fragment: remove the `#` and what follows it"
    ),
    Mistake(
      "\(plain)\nsign_out_notice = \"http://localhost:8080/auth\",",
      "4: grafana.sign_out_notice: \"http://localhost:8080/auth\" is on `public_url`, the gateway's own origin: write an address of the app"
    ),
    Mistake(
      "\(plain)\nrequire = { group = \"stuff\" },",
      "4: grafana.require.group: accounts.lua does not define the group \"stuff\"; did you mean `staff`?"),
    Mistake(
      "\(plain)\nrequire = {},",
      "4: grafana.require: has no requirement; write { group = \"ops\" }, { passed = \"pin\", within = \"5m\" }, { factors = 2 } or { email_verified = true }"
    ),
    Mistake(
      "\(plain)\nrequire = { factors = 0 },",
      "4: grafana.require.factors: must be a whole number from 1 to 9, not the number 0"),
    Mistake(
      "\(plain)\nrequire = { passed = \"retina\" },",
      "4: grafana.require.passed: unknown provider \"retina\"; available: `email_code`, `google_oauth`, `password`, `phone_otp`, `pin` and `totp`"
    ),
    Mistake(
      "\(plain)\ndecide = allow,",
      "4: grafana.decide: must be a function, as in function(f) return allow end, not `allow`"),
    Mistake(
      "\(plain)\nclaims = { role = \"Admin\" },",
      "4: grafana.claims: must be a function, as in function(f) return { role = \"Admin\" } end, not a table"),
    Mistake(
      "\(plain)\nscopes = { \"open id\" },",
      "4: grafana.scopes: \"open id\" is not a scope: use 1 to 64 printable ASCII characters without space, quotation mark and backslash"
    ),
    Mistake(
      "\(plain)\ngrants = { \"authorization_code\" }, scopes = { \"openid\", \"offline_access\" },",
      "4: grafana.scopes: `offline_access` requires the grant `refresh_token`"),
    Mistake(
      "\(plain)\nsigning = \"none\",",
      "4: grafana.signing: \"none\" is not known; available: `ES256`, `EdDSA` and `RS256`"),
    Mistake(
      "\(plain)\naccess_token = \"jwt\",",
      "2: grafana.audience: is missing: the APIs that accept its access tokens, as in { \"https://api.example.com\" }; with `jwt`"
    ),
    Mistake(
      "\(plain)\naudience = { \"https://api.example.com\" },",
      "4: grafana.audience: applies only to access_token = \"jwt\": remove it, or add that"),
    // Attack: the access token of one app is an ID token for another one, whose client id is its audience.
    Mistake(
      "\(plain)\naccess_token = \"jwt\", audience = { \"other-app\" },",
      "4: grafana.audience: \"other-app\" is not an absolute URI of at most 255 characters, such as \"https://api.example.com\""
    ),
    Mistake(
      "\(plain)\naccess_token = \"jwt\", audience = { \"http://localhost:8080\" },",
      "4: grafana.audience: \"http://localhost:8080\" is on `public_url`, the gateway's own origin: write an API's URI"),
    Mistake(
      "\(plain)\nlifetimes = { id_token = \"500ms\" },",
      "4: grafana.lifetimes.id_token: must be longer than \"500ms\""),
    Mistake(
      "\(plain)\nlifetimes = { id_token = \"2d\" },",
      "4: grafana.lifetimes.id_token: must be at most \"1d\": the key that signs such a token is published for one more day"
    ),
    Mistake(
      "\(plain)\naccess_token = \"jwt\", audience = { \"https://api.example.com\" },\nlifetimes = { access_token = \"25h\" },",
      "5: grafana.lifetimes.access_token: must be at most \"1d\": the key that signs such a token is published for one more day"
    ),
    Mistake(
      "\(plain)\nlifetimes = { acess_token = \"5m\" },",
      "4: grafana.lifetimes.acess_token: unknown field; did you mean `access_token`? (the lifetime of access tokens)"),
    // Attack: an authorization code is injected into a public app that uses no PKCE (RFC 9700 section 4.5).
    Mistake(
      "public = true, \(redirect)\npkce = \"optional\",",
      "4: grafana.pkce: must be \"required\" for a public app: only PKCE protects its codes"),
    Mistake(
      "secret = file \"secrets/grafana\",\nredirect_uris = { \"https://a.example.com/in\", \"https://b.example.com/in\" },\nsubject = \"pairwise\",",
      "5: grafana.subject: \"pairwise\" requires https `redirect_uris` on one host, by which the subjects are computed"),
    Mistake(
      "public = true, redirect_uris = { \"com.example.app:/in\" },\nsubject = \"pairwise\",",
      "4: grafana.subject: \"pairwise\" requires https `redirect_uris` on one host, by which the subjects are computed"),
    // Attack: a developer who may edit one app's function makes users somebody else at that app.
    Mistake(
      "\(plain)\nclaims = function(f)\n  return { role = \"x\",\n    sub = \"root\" }\nend,",
      "6: returns the claim `sub`, which the gateway itself writes: choose another name"),
    Mistake(
      "\(plain)\nclaims = function(f) if f.session.groups.staff then return { [\"email_verified\"] = true } end end,",
      "4: returns the claim `email_verified`, which the gateway itself writes: choose another name"),
    Mistake(
      "\(plain)\nclaims = function(f) return { role = f.session.groups.stuff and \"Admin\" } end,",
      "4: `f.session.groups.stuff`: accounts.lua does not define the group \"stuff\"; did you mean `staff`?"),
    Mistake(
      "\(plain)\ndecide = function(f) return require_also \"retina\" end,",
      "4: require_also names `retina`, which gateway.lua does not configure; available: `email_code` and `phone_otp`"),
  ]

  @Test(arguments: mistakes) func mistakeIsReported(_ mistake: Mistake) throws {
    let problems = try Self.folder(Self.apps(mistake.body), ["secrets/empty": "\n"]).problems()
    #expect(problems == ["apps.lua:\(mistake.problem)"])
  }

  @Test func tablesInsideFunctionsOfClaimsMayHaveAnyName() throws {
    let body = """
      \(Self.plain)
      claims = function(f)
        local names = { sub = 1, email = 2 }
        local function inner() return { sub = names.sub } end
        return { role = { sub = inner().sub }, ["https://example.com/role"] = "Admin" }
      end,
      """
    #expect(try Self.folder(Self.apps(body)).problems() == [])
  }

  /// Attack: a secret that others on this machine can read.
  @Test func sharedSecretFileIsRefused() throws {
    let folder = try Self.folder(Self.apps(Self.plain))
    try folder.scratch.setMode(0o644, of: "secrets/grafana")
    let problems = folder.problems()
    #expect(problems.count == 1 && problems[0].contains("grafana.secret: secrets/grafana: has mode 644"), "\(problems)")
  }

  @Test func shortSecretIsAWarning() throws {
    let warnings = try Self.folder(Self.apps(Self.plain), ["secrets/grafana": "hunter2"]).generation().warnings
    #expect(
      warnings.map(\.description) == [
        "apps.lua:3: grafana.secret: the secret is shorter than 32 characters: `moongate app secret grafana` writes one of 43"
      ])
  }

  /// Attack: an app that has the same secret as another signs in as that one.
  @Test func sharedSecretIsAWarning() throws {
    let text = """
      return apps {
        grafana = app { secret = file "secrets/grafana", redirect_uris = { "https://grafana.example.com/in" } },
        wiki = app { secret = file "secrets/wiki", redirect_uris = { "https://wiki.example.com/in" } },
        notes = app { secret = file "secrets/notes", redirect_uris = { "https://notes.example.com/in" } },
      }
      """
    let warnings = try Self.folder(
      text, ["secrets/wiki": Self.secret + "\n", "secrets/notes": "another secret, of more than 32 characters"]
    ).generation().warnings.map(\.description)
    #expect(warnings.count == 1, "\(warnings)")
    #expect(warnings.first?.contains("is also the secret of `") == true, "\(warnings)")
  }

  @Test func changedSecretChangesTheGenerationButNotItsID() throws {
    let folder = try Self.folder(Self.apps(Self.plain))
    let before = try folder.generation()
    try folder.scratch.write("another secret, of more than 32 characters", to: "secrets/grafana")
    let after = try folder.generation()
    #expect(before.id == after.id && before.secretFiles != after.secretFiles)
    #expect(after.apps["grafana"]?.authentication == .secret(SecretText("another secret, of more than 32 characters")))
  }

  @Test func secretIsFoundBeforeItExists() throws {
    let folder = try TestFolder([
      "apps.lua": """
      return apps {
        grafana = app { secret = file "secrets/grafana", redirect_uris = { "https://grafana.example.com/in" } },
        wiki = app { secret = env "WIKI", redirect_uris = { "https://wiki.example.com/in" } },
        git = app { secret = credential "git", redirect_uris = { "https://git.example.com/in" } },
        mobile = app { public = true, redirect_uris = { "com.example.app:/in" } },
      }
      """
    ])
    let loader = ConfigurationLoader(providers: TestFolder.providers.map(DescribedProvider.init), environment: [:])
    let source = { (id: String) in try loader.secretSource(ofApp: id, folder: folder.scratch.path) }
    #expect(try source("grafana") == .file(folder.scratch.path("secrets/grafana")))
    #expect(try source("wiki") == .environment("WIKI") && source("git") == .credential("git"))
    #expect(try source("mobile") == .absent)
    do {
      _ = try source("grafanna")
      Issue.record("the app exists")
    } catch let refused as RefusedConfiguration {
      #expect(refused.problems.map(\.description) == ["apps.lua: defines no app \"grafanna\"; did you mean `grafana`?"])
    }
  }

  /// A thousand apps with functions, secrets and addresses: no step may grow with the square of their number.
  @Test func aThousandAppsLoad() throws {
    let apps = (0..<1_000).map { number in
      """
        app\(number) = app {
          public = true, redirect_uris = { "https://app\(number).example.com/in", "http://127.0.0.1/in\(number)" },
          require = { group = "staff", factors = 2 }, decide = function(f) return allow end,
          claims = function(f) return { role = f.session.groups.staff and "Admin" or "Viewer" } end,
        },
      """
    }
    let folder = try Self.folder("return apps {\n\(apps.joined(separator: "\n"))\n}")
    let generation = try folder.generation()
    #expect(generation.apps.apps.count == 1_000)
    #expect(SettingsDiff(old: generation, new: generation, providers: .none).changes == [])
  }
}
