import Hummingbird

/// A site of others that is served below a path of ours, as the demo's mock of Google is: it answers for itself, and
/// none of our cookies, sessions or guards are its own.
package struct Mount: Sendable {
  /// `/mock-google`, without a slash at its end.
  package let path: String
  let respond: @Sendable (Request) async -> Response

  package init(path: String, respond: @escaping @Sendable (Request) async -> Response) {
    self.path = path
    self.respond = respond
  }

  /// - Parameter target: a request's path, as received.
  func holds(_ target: Substring) -> Bool { target == path || target.hasPrefix(path + "/") }
}
