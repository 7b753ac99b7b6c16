import MoongateCore
import MoongatePolicy
import MoongateTesting
import Testing

/// Routes that lead to the gateway itself, where each request of a signed-in user is refused with 401.
@Suite struct OwnAddressTests {
  /// - Returns: the problems, and then the warnings, of a route to `upstream`.
  private func found(
    to upstream: String, listen: String = "127.0.0.1:8080", publicURL: String = "https://auth.example.com"
  ) throws -> [String] {
    let gateway = TestFolder.gateway
      .replacing("\"http://localhost:8080\"", with: "\"\(publicURL)\", listen = \"\(listen)\"")
      .replacing("outbox()", with: "outbox { allow_public = true }")
    let routes = "return routes {\n{ path = \"/**\",\nto = \"\(upstream)\" },\n}"
    let folder = try TestFolder(["gateway.lua": gateway, "routes.lua": routes])
    let problems = folder.problems()
    guard problems.isEmpty else { return problems }
    return try folder.generation().warnings.map(\.description).filter { $0.hasPrefix("routes.lua") }
  }

  @Test(arguments: [
    ("http://127.0.0.1:8080", "127.0.0.1:8080"), ("http://localhost:8080", "127.0.0.1:8080"),
    ("http://127.0.0.1:8080", "localhost:8080"), ("http://[::1]:8080", "[::1]:8080"),
    ("http://127.0.0.1:8080", "0.0.0.0:8080"), ("http://127.0.0.2:8080", "0.0.0.0:8080"),
    ("http://localhost:8080", "[::]:8080"), ("http://[::1]:8080", "[::]:8080"), ("http://127.0.0.1:8080", "[::]:8080"),
    ("http://0.0.0.0:8080", "127.0.0.1:8080"), ("https://10.1.2.3:8443", "10.1.2.3:8443"),
    ("http://GATEWAY.internal:8080", "gateway.internal:8080"), ("http://localhost", "127.0.0.1:80"),
  ]) func theOwnListenerGetsAWarning(_ upstream: String, _ listen: String) throws {
    #expect(
      try found(to: upstream, listen: listen) == [
        "routes.lua:3: routes[1].to: \"\(upstream)\" leads back to the gateway, which listens on \(listen): write the address of your service, or correct `listen` in gateway.lua"
      ])
  }

  /// A name can lead to the service inside a network, and to the gateway outside of it.
  @Test(arguments: ["https://auth.example.com", "http://localhost"]) func thePublicURLGetsAWarning(_ url: String) throws
  {
    let host = url.split(separator: "/")[1]
    #expect(
      try found(to: url, publicURL: url) == [
        "routes.lua:3: routes[1].to: \"\(url)\" is `public_url`, which leads back to the gateway unless this machine resolves \(host) to your service: write the address of your service"
      ])
  }

  @Test(arguments: [
    ("http://127.0.0.1:3000", "127.0.0.1:8080"), ("http://127.0.0.2:8080", "127.0.0.1:8080"),
    ("http://[::1]:8080", "127.0.0.1:8080"), ("http://127.0.0.1:8080", "10.1.2.3:8080"),
    ("http://10.1.2.4:8080", "0.0.0.0:8080"), ("http://service:8080", "0.0.0.0:8080"),
    ("http://[::1]:8080", "0.0.0.0:8080"), ("http://auth.example.com:8080", "127.0.0.1:8080"),
    ("http://auth.example.com", "127.0.0.1:8080"), ("https://auth.example.com:8443", "127.0.0.1:8443"),
    ("http://127.0.0.1:8080", "127.0.0.1:0"),
  ]) func otherAddressesAreAccepted(_ upstream: String, _ listen: String) throws {
    #expect(try found(to: upstream, listen: listen).isEmpty)
  }

  @Test func eachOfSeveralUpstreamsIsExamined() throws {
    let routes =
      "return routes {\n{ path = \"/**\", to = { \"http://127.0.0.1:3000\",\n\"http://127.0.0.1:8080\" } },\n}"
    let warnings = try TestFolder(["routes.lua": routes]).generation().warnings.map(\.description)
    #expect(warnings.count { $0.hasPrefix("routes.lua:3: routes[1].to: \"http://127.0.0.1:8080\" leads back") } == 1)
  }
}
