import MoongateCore

extension Route {
  /// The route with `frames` and `error_pages`.
  func framed(by sites: [String] = ["https://portal.example.com"], errorPages: String? = nil) -> Route {
    var route = self
    route.frames = sites
    route.errorPages = errorPages
    return route
  }
}
