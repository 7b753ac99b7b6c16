import MoongateCore
import MoongatePolicy
import MoongateTesting
import Testing

/// The admin listener of a folder with problems: commands must find the gateway that runs.
@Suite struct AdminListenerTests {
  private static let public8080 = "public_url = \"http://localhost:8080\","

  private func read(_ files: [String: String?]) throws -> Result<AdminListener, RefusedConfiguration> {
    let folder = try TestFolder(files)
    return ConfigurationLoader(
      providers: TestFolder.providers.map(DescribedProvider.init), environment: ["ONE": "one-0123456789abcdef"]
    ).adminListener(folder: folder.scratch.path)
  }

  private func problems(_ gateway: String?) throws -> [String] {
    switch try read(["gateway.lua": gateway]) {
    case .success(let listener): ["no problem: \(listener.address)"]
    case .failure(let refused): refused.problems.map(\.description)
    }
  }

  @Test(arguments: [
    "\(public8080) admin = \"127.0.0.1:9902\" }",
    // A misspelled field, a wrong value, an unknown provider, and a required field that is missing.
    "publik_url = \"http://localhost:8080\", admin = \"127.0.0.1:9902\" }",
    "\(public8080) drain = 5, admin = \"127.0.0.1:9902\", providers = { phone_opt = {} } }",
    "admin = \"127.0.0.1:9902\", store = env \"NOT_SET\" }",
    "admin = \"127.0.0.1:9902\", hsts = fals }",
  ]) func problemsOfOtherSettingsDoNotHideIt(_ fields: String) throws {
    let listener = try read(["gateway.lua": "return gateway { \(fields)", "routes.lua": "return routes {"]).get()
    #expect(listener.address == ListenAddress(host: "127.0.0.1", port: 9902) && listener.tokens.isEmpty)
  }

  @Test func itHasTheTokensAndTheDefaultAddress() throws {
    let listener = try read([
      "gateway.lua":
        "return gateway { admin = { address = \"10.0.0.5:9901\", token = env \"ONE\" }, publik_url = 1 }"
    ]).get()
    #expect(listener.tokens.map(\.name) == ["admin"] && listener.tokens.map(\.role) == [.act])
    #expect(!"\(listener)".contains("0123456789abcdef"))
    let standard = try read(["gateway.lua": "return gateway { publik_url = \"http://localhost:8080\" }"]).get()
    #expect(standard.address == ListenAddress(host: "127.0.0.1", port: 9901))
  }

  @Test func itIsReadWithSharedFiles() throws {
    let gateway = "local hosts = include \"hosts\"\nreturn gateway { admin = hosts.admin, publik_url = 1 }"
    let hosts = "return { admin = \"127.0.0.1:9902\" }"
    let listener = try read([
      "gateway.lua": gateway, "shared/hosts.lua": hosts, "shared/broken.lua": "return {", "shared/Broken.lua": "",
    ]).get()
    #expect(listener.address == ListenAddress(host: "127.0.0.1", port: 9902))
    guard case .failure(let refused) = try read(["gateway.lua": gateway, "shared/hosts.lua": "return {"]) else {
      Issue.record("an address was read from a file that is broken")
      return
    }
    #expect(refused.problems.map(\.location.file) == ["shared/hosts.lua"], "\(refused.problems)")
  }

  /// Attack on ourselves: `moongate upgrade` replaces another gateway, which listens at the default address.
  @Test(arguments: [
    ("return gateway { admn = \"127.0.0.1:9902\" }", "gateway.lua:1: admn: unknown field; did you mean `admin`?"),
    ("return gateway {\n  admin = ADMIN_ADDRESS,\n}", "gateway.lua:2: "),
    (
      "return gateway {\n  admin = \"127.0.0.1:9902\",\n  admin = \"127.0.0.1:9901\",\n}",
      "gateway.lua:3: admin: is set twice in one table, first in line 2"
    ),
    (
      "return gateway {\n  admin = {\n    address = \"127.0.0.1:9902\",\n    address = \"127.0.0.1:9901\",\n  },\n}",
      "gateway.lua:4: address: is set twice in one table, first in line 3"
    ),
    ("return gateway { admin = \"9902\" }", "gateway.lua:1: admin: \"9902\" is not a valid listen address"),
    (
      "return gateway { admin = { address = \"10.0.0.5:9901\", token = env \"NOT_SET\" } }",
      "gateway.lua:1: admin.token: the environment variable is missing: NOT_SET"
    ),
    (
      "return gateway { admin = { address = \"10.0.0.5:9901\", tokn = env \"ONE\" } }",
      "gateway.lua:1: admin.tokn: unknown field; did you mean `token`?"
    ),
    ("return gateway {", "gateway.lua:1: "),
    ("return routes {}", "gateway.lua: must return gateway { … }, but returns `routes`"),
  ]) func addressThatIsUncertainIsRefused(_ gateway: String, _ problem: String) throws {
    let told = try problems(gateway)
    #expect(told.count == 1 && told[0].hasPrefix(problem), "\(told)")
  }

  @Test func missingFileIsNamed() throws { #expect(try problems(nil) == ["gateway.lua: is missing"]) }
}
