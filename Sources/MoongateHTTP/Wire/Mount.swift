import Hummingbird

/// Another site that is served below a path of the gateway, such as the demo's mock of Google. It answers its requests
/// itself, without the gateway's cookies, sessions and checks.
package struct Mount: Sendable {
  /// The path without a slash at its end, such as `/mock-google`.
  package let path: String
  let respond: @Sendable (Request) async -> Response

  package init(path: String, respond: @escaping @Sendable (Request) async -> Response) {
    self.path = path
    self.respond = respond
  }

  /// - Parameter target: the path of a request, as received.
  func holds(_ target: Substring) -> Bool { target == path || target.hasPrefix(path + "/") }
}
