import HTTPTypes
import Hummingbird
import MoongateCore

/// Which web pages elsewhere may call `/api/auth` (`cors_origins`; WHATWG Fetch, "CORS protocol").
///
/// Attack: `https://spa.example.com.evil`, `https://evilspa.example.com`, another port, another scheme, or the `null`
/// of a sandboxed frame. An origin is compared as a whole with those that the operator wrote, and never reflected else.
struct CrossOrigin: Sendable {
  /// What a page's script may send along.
  private static let requestHeaders = "authorization, content-type, moongate-device"
  /// What it may read besides what every script may.
  private static let exposed = "Retry-After, WWW-Authenticate"
  /// How long a browser may remember the answer to its question, in seconds.
  private static let memory = "600"

  /// As gateway.lua has them, each in its one spelling.
  let origins: [String]

  init(_ gateway: GatewaySettings) { origins = gateway.corsOrigins }

  /// Whether they hold for this path: the API, and neither pages nor what is only for our own origin.
  static func covers(_ path: Substring) -> Bool { path.hasPrefix("/api/auth/") }

  /// The one origin that the request names, where it is allowed.
  func allowed(_ request: Request) -> String? {
    let named = request.headers[values: .origin]
    guard named.count == 1, origins.contains(named[0]) else { return nil }
    return named[0]
  }

  /// The answer to a browser that asks before it sends (a preflight); nil where the request is none, or from somewhere
  /// else.
  /// - Parameter methods: what there is at the address.
  func preflight(_ request: Request, methods: [String]) -> Response? {
    guard request.method == .options, request.headers[.accessControlRequestMethod] != nil, allowed(request) != nil
    else { return nil }
    var response = Response.nothing
    response.headers[.accessControlAllowMethods] = methods.joined(separator: ", ")
    response.headers[.accessControlAllowHeaders] = Self.requestHeaders
    response.headers[.accessControlMaxAge] = Self.memory
    return response
  }

  /// Lets the page read the answer, refusals too. Answers differ by origin, so caches are told.
  func mark(_ response: inout Response, for request: Request) {
    guard !origins.isEmpty else { return }
    response.headers[.vary] = "Origin"
    guard let origin = allowed(request) else { return }
    response.headers[.accessControlAllowOrigin] = origin
    response.headers[.accessControlAllowCredentials] = "true"
    if request.method != .options { response.headers[.accessControlExposeHeaders] = Self.exposed }
  }
}
