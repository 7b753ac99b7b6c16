import MoongateCore
import MoongateTesting
import Testing

/// The headers by which routes name users.
@Suite struct IdentityHeaderNamesTests {
  private let usual = ["Remote-User", "Remote-Email", "Remote-Phone", "Remote-Name", "Remote-Groups"]

  private func table(_ routes: [ServiceIdentity.Statement: String]...) -> RouteTable {
    RouteTable(
      routes: routes.map { names in
        var route = Route(
          host: nil, path: PathPattern(text: "/**", segments: [.anySegments]), methods: nil, upstreams: [],
          isOpen: false, flow: "login", requirement: nil, decide: nil, timeout: .seconds(1), allowsUpgrade: false,
          headers: [], bodyLimit: nil, location: SourceLocation(file: "routes.lua", line: 1))
        route.identity.headers = names.mapValues {
          ServiceIdentity.Header(name: $0, value: IdentityTemplate([.id]))
        }
        return route
      })
  }

  @Test func usualNamesAreAlwaysListed() {
    #expect(table().identityHeaderNames == usual)
    #expect(table([:]).identityHeaderNames == usual)
    #expect(table([.user: "X-User"]).identityHeaderNames == usual + ["X-User"])
  }

  @Test func otherNamesAreSortedAndListedOnce() {
    let table = table(
      [.user: "X-User", .email: "X-Email"], [.user: "x-user", .groups: "remote-groups"], [.name: "Name"])
    #expect(table.identityHeaderNames == usual + ["Name", "X-Email", "X-User"])
  }
}
