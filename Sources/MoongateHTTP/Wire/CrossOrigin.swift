import HTTPTypes
import Hummingbird
import MoongateCore

/// The web origins that may call `/api/auth` (`cors_origins`; WHATWG Fetch, "CORS protocol").
///
/// Attack: `https://spa.example.com.evil`, `https://evilspa.example.com`, another port, another scheme, or the `null`
/// of a sandboxed frame. The whole origin is compared with those in the configuration, and never reflected otherwise.
struct CrossOrigin: Sendable {
  /// Headers that scripts may send.
  private static let requestHeaders = "authorization, content-type, moongate-device"
  /// Headers that scripts may read in addition to the default ones.
  private static let exposed = "Retry-After, WWW-Authenticate"
  /// How long browsers may cache a preflight answer, in seconds.
  private static let maxAge = "600"

  /// The origins of gateway.lua in canonical form.
  let origins: [String]

  init(_ gateway: GatewaySettings) { origins = gateway.corsOrigins }

  /// Whether CORS applies to the path: only to the API, not to pages and own-origin calls.
  static func covers(_ path: Substring) -> Bool { path.hasPrefix("/api/auth/") }

  /// The single Origin of the request, if it is allowed.
  func allowed(_ request: Request) -> String? {
    let named = request.headers[values: .origin]
    guard named.count == 1, origins.contains(named[0]) else { return nil }
    return named[0]
  }

  /// The answer to a preflight request; nil for any other request, or for an origin that is not allowed.
  /// - Parameter methods: the methods of the endpoint.
  func preflight(_ request: Request, methods: [String]) -> Response? {
    guard request.method == .options, request.headers[.accessControlRequestMethod] != nil, allowed(request) != nil
    else { return nil }
    var response = Response.nothing
    response.headers[.accessControlAllowMethods] = methods.joined(separator: ", ")
    response.headers[.accessControlAllowHeaders] = Self.requestHeaders
    response.headers[.accessControlMaxAge] = Self.maxAge
    return response
  }

  /// Allows the page to read the answer, including refusals. Answers differ by origin, so Vary informs caches.
  func mark(_ response: inout Response, for request: Request) {
    guard !origins.isEmpty else { return }
    response.headers[.vary] = "Origin"
    guard let origin = allowed(request) else { return }
    response.headers[.accessControlAllowOrigin] = origin
    response.headers[.accessControlAllowCredentials] = "true"
    if request.method != .options { response.headers[.accessControlExposeHeaders] = Self.exposed }
  }
}
