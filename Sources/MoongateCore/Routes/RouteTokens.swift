/// Which tokens a route takes, besides the sessions of people.
package struct RouteTokens: Sendable, Hashable {
  /// Whether it takes every service token.
  package let takesAllServices: Bool
  /// The service tokens that it takes, by their names.
  package let names: Set<String>
  /// Whether it takes the tokens that people have made.
  package let takesPersonal: Bool

  package init(takesAllServices: Bool = false, names: Set<String> = [], takesPersonal: Bool = false) {
    self.takesAllServices = takesAllServices
    self.names = names
    self.takesPersonal = takesPersonal
  }

  /// Every service token: `tokens = true`.
  package static let services = RouteTokens(takesAllServices: true)

  /// Whether the token gets as far as to be judged by `require` and `decide`.
  package func admits(_ token: AccessToken) -> Bool {
    token.owner == nil ? takesAllServices || names.contains(token.name) : takesPersonal
  }
}
