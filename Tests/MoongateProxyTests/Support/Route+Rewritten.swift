import MoongateCore

extension Route {
  /// The route with another path, Host or responses.
  func rewritten(
    strip: String = "", base: String = "", host: ServiceHost = .kept, responses: [(name: String, value: String?)] = []
  ) -> Route {
    var route = self
    route.rewrite = PathRewrite(strip: strip, base: base)
    route.hostHeader = host
    route.responseHeaders = responses
    return route
  }
}
