/// The tokens that a route accepts in addition to sessions.
package struct RouteTokens: Sendable, Hashable {
  /// Whether it accepts every service token.
  package let takesAllServices: Bool
  /// The names of the service tokens that it accepts.
  package let names: Set<String>
  /// Whether it accepts personal access tokens.
  package let takesPersonal: Bool

  package init(takesAllServices: Bool = false, names: Set<String> = [], takesPersonal: Bool = false) {
    self.takesAllServices = takesAllServices
    self.names = names
    self.takesPersonal = takesPersonal
  }

  /// `tokens = true`: every service token.
  package static let services = RouteTokens(takesAllServices: true)

  /// Whether the route accepts the token. `require` and `decide` are checked afterwards.
  package func admits(_ token: AccessToken) -> Bool {
    token.owner == nil ? takesAllServices || names.contains(token.name) : takesPersonal
  }
}
