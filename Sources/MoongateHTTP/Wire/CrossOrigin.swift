import HTTPTypes
import Hummingbird
import MoongateCore

/// The web origins that may call a path of the gateway by scripts (WHATWG Fetch, "CORS protocol"): those of
/// `cors_origins` for `/api/auth`, with the user's session, and those of apps for what apps call, without it.
struct CrossOrigin: Sendable {
  /// Headers that scripts may send.
  private static let requestHeaders = "authorization, content-type, moongate-device"
  /// How long browsers may cache a preflight answer, in seconds.
  private static let maxAge = "600"

  /// The origins that may call the path; nil: those of the apps.
  private let origins: [String]?
  private let apps: AppTable

  /// - Returns: nil if CORS does not apply to the path, as to pages and calls of the own origin.
  init?(_ path: Substring, _ generation: any PolicyGeneration) {
    apps = generation.apps
    if Self.coversAPI(path) {
      origins = generation.gateway.corsOrigins
    } else {
      guard !generation.apps.apps.isEmpty, OwnPaths.scriptsOfAppsMayCall(path) else { return nil }
      origins = nil
    }
  }

  /// Whether the path is one of the API.
  static func coversAPI(_ path: Substring) -> Bool { path.hasPrefix(CrossOriginMarks.prefix.description) }

  private func marks(_ request: Request) -> CrossOriginMarks? {
    let named = request.headers[values: .origin]
    if let origins { return CrossOriginMarks(named, allowed: origins) }
    return CrossOriginMarks(named) { apps.hasRedirectURI(at: $0) }
  }

  /// The answer to a preflight request; nil for any other request, or for an origin that is not allowed.
  /// - Parameter methods: the methods of the endpoint.
  func preflight(_ request: Request, methods: [String]) -> Response? {
    guard request.method == .options, request.headers[.accessControlRequestMethod] != nil,
      marks(request)?.origin != nil
    else { return nil }
    var response = Response.nothing
    response.headers[.accessControlAllowMethods] = methods.joined(separator: ", ")
    response.headers[.accessControlAllowHeaders] = Self.requestHeaders
    response.headers[.accessControlMaxAge] = Self.maxAge
    return response
  }

  /// Allows the page to read the answer, including refusals.
  func mark(_ response: inout Response, for request: Request) {
    guard let marks = marks(request) else { return }
    for field in marks.fields(isOptions: request.method == .options) {
      response.headers.set(field.name, to: field.value)
    }
  }
}

extension AppTable {
  /// Whether an app has a redirect URI of this web origin, which is written as browsers write it.
  ///
  /// Attack: `https://app.example.com.evil`. What follows the origin in the redirect URI is its path or its query.
  fileprivate func hasRedirectURI(at origin: String) -> Bool {
    guard origin.hasPrefix("https://") || origin.hasPrefix("http://") else { return false }
    return apps.contains { app in
      app.redirectURIs.contains { uri in
        guard uri.text.hasPrefix(origin) else { return false }
        let rest = uri.text.dropFirst(origin.count)
        return rest.isEmpty || rest.hasPrefix("/") || rest.hasPrefix("?")
      }
    }
  }
}
