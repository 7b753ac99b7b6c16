import MoongateCore

/// How the gateway's own pages on a route differ from the usual ones: `frames` and `error_pages`.
final class RefusalStyle {
  /// The folder below `pages/` with the route's templates; nil for the gateway's own page.
  let templates: String?
  /// The sources of `frame-ancestors`; nil if no site may show the pages in a frame.
  let frames: String?

  /// - Returns: nil if the pages are the usual ones.
  init?(_ route: Route) {
    guard route.errorPages != nil || !route.frames.isEmpty else { return nil }
    templates = route.errorPages
    frames = route.frames.isEmpty ? nil : "'self' " + route.frames.joined(separator: " ")
  }
}
