import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// Entries of a kind of site, such as `work = openid { … }`: their names, buttons and icons.
@Suite struct KindReadingTests {
  private static let providers = ShippedProviders.all + ShippedProviders.kinds
  private static let icon = "<svg viewBox=\"0 0 8 8\"><path d=\"M0 0h8v8H0z\"/></svg>"

  private static func load(_ entries: String, icon: String = icon) throws -> Result<
    any PolicyGeneration, RefusedConfiguration
  > {
    let gateway = TestFolder.gateway.replacing("providers = {", with: "providers = {\n\(entries),\n")
    let folder = try TestFolder(["gateway.lua": gateway, "icons/work.svg": icon])
    let loader = ConfigurationLoader(providers: providers, environment: ["SECRET": "s3cret"])
    return loader.load(folder: folder.scratch.path)
  }

  private static func problems(_ entries: String, icon: String = icon) throws -> [String] {
    if case .failure(let refused) = try load(entries, icon: icon) { return refused.problems.map(\.description) }
    return []
  }

  private static let client = "client_id = \"gateway\", client_secret = env \"SECRET\""

  private static func descriptor(_ entries: String, _ name: String) throws -> ProviderDescriptor {
    try #require(try load(entries).get().registry?.all.first { $0.descriptor.name.rawValue == name }?.descriptor)
  }

  @Test func anInstanceHasItsOwnNameFlowsAndPolicy() throws {
    let entry = "work = openid { issuer = \"https://login.example.com\", \(Self.client), label = \"Example Inc.\" }"
    let work = try Self.descriptor(entry, "work")
    #expect(work.instanceOf == "openid" && work.flows.map(\.name) == ["work_join"])
    #expect(work.policy.text.contains("policy \"work\"") && work.flows[0].text.contains("{ \"work\" }"))
    #expect(work.entrance == .button(label: "Example Inc.", icon: nil, priority: 100))
    #expect(work.words?.name == "Example Inc.")
    let generation = try Self.load(entry).get()
    #expect(generation.policies["work"] != nil && generation.policies["openid"] == nil)
    #expect(generation.flows["work_join"] != nil && generation.flows["openid_join"] == nil)
  }

  @Test func aPresetThatUsersKnowNamesTheButton() throws {
    let github = try Self.descriptor("github = oauth { preset = \"github\", \(Self.client) }", "github")
    #expect(github.entrance == .button(label: "Continue with GitHub", icon: nil, priority: 100))
    #expect(github.words?.name == "GitHub" && github.presentation == .externalSite(button: "Continue with GitHub"))
  }

  @Test func anIconIsTakenFromItsFile() throws {
    let entry = "work = openid { preset = \"slack\", \(Self.client), icon = \"icons/work.svg\" }"
    let work = try Self.descriptor(entry, "work")
    #expect(work.entrance == .button(label: "Continue with Slack", icon: Self.icon, priority: 100))
  }

  /// Attack: an icon with a script, a style or a link in it, which every visitor of the sign-in page would load.
  @Test(
    arguments: [
      "<svg><script>1</script></svg>", "<svg onload=\"x()\"></svg>", "<svg><a href=\"//x\"/></svg>", "<p></p>",
      "<svg><image xlink:href=\"https://x\"/></svg>", "<svg style=\"x\"></svg>", "<svg><style>*{}</style></svg>",
      "<svg><foreignObject/></svg>", "<svg>", "",
      "<svg>" + String(repeating: "<g/>", count: 5_000) + "</svg>",
    ])
  func anUnsafeIconIsRefused(icon: String) throws {
    let entry = "work = openid { preset = \"slack\", \(Self.client), icon = \"icons/work.svg\" }"
    let problems = try Self.problems(entry, icon: icon)
    #expect(problems.count == 1 && problems[0].contains("providers.work.icon: "), "\(problems)")
  }

  @Test(
    arguments: [
      ("openid = { \(client) }", "is a kind of provider: give the entry a name of its own, as in work = openid"),
      ("oauth = oauth { \(client) }", "is a kind of provider"),
      ("work = openid { preset = \"slack\", \(client), title = \"A\", label = \"B\" }", "says the same as `title`"),
      ("work = openid { preset = \"slacks\", \(client) }", "did you mean `slack`?"),
      ("work = openid { preset = \"okta\", \(client) }", "providers.work.issuer: is missing: the preset okta needs it"),
      ("work = oauth { preset = \"github\", \(client), userinfo = \"https://x\" }", "must be a table"),
      ("work = oauth { preset = \"github\", \(client), userinfo = { { \"x\" } } }", "must be a text in quotes"),
      ("work = openid { preset = \"slack\", client_id = \"x\" }", "write the client's secret, or its private_key"),
    ])
  func mistakesAreReported(entries: String, message: String) throws {
    let problems = try Self.problems(entries)
    #expect(problems.contains { $0.contains(message) }, "\(problems)")
  }
}
