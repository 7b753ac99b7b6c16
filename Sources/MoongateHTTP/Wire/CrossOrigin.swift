import HTTPTypes
import Hummingbird
import MoongateCore

/// The web origins that may call `/api/auth` (`cors_origins`; WHATWG Fetch, "CORS protocol").
struct CrossOrigin: Sendable {
  /// Headers that scripts may send.
  private static let requestHeaders = "authorization, content-type, moongate-device"
  /// How long browsers may cache a preflight answer, in seconds.
  private static let maxAge = "600"

  /// The origins of gateway.lua in canonical form.
  let origins: [String]

  init(_ gateway: GatewaySettings) { origins = gateway.corsOrigins }

  /// Whether CORS applies to the path: only to the API, not to pages and own-origin calls.
  static func covers(_ path: Substring) -> Bool { path.hasPrefix(CrossOriginMarks.prefix.description) }

  private func marks(_ request: Request) -> CrossOriginMarks? {
    CrossOriginMarks(request.headers[values: .origin], allowed: origins)
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
