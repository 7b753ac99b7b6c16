/// The header fields by which web pages of other origins may read an answer of the API (`cors_origins`; WHATWG Fetch,
/// "CORS protocol"). The API and the data path, which refuses some requests before they reach the API, both use them.
///
/// Attack: `https://spa.example.com.evil`, `https://evilspa.example.com`, another port, another scheme, or the `null`
/// of a sandboxed frame. The whole origin is compared with those in the configuration, and never reflected otherwise.
package struct CrossOriginMarks: Sendable, Equatable {
  /// The path below which CORS applies: the API, not pages and calls of the own origin.
  package static let prefix: StaticString = "/api/auth/"
  /// Headers that scripts may read in addition to the default ones.
  private static let exposed = "Retry-After, WWW-Authenticate"

  /// The single Origin of the request, if it may read the answer.
  package let origin: String?
  /// Whether browsers send the user's session with the request.
  private let sendsCookies: Bool

  /// - Parameters:
  ///   - named: the values of the request's Origin fields.
  ///   - origins: `cors_origins`.
  /// - Returns: nil without `cors_origins`. Answers then do not differ by origin.
  package init?(_ named: [String], allowed origins: [String]) {
    if origins.isEmpty { return nil }
    origin = named.count == 1 && origins.contains(named[0]) ? named[0] : nil
    sendsCookies = true
  }

  /// The fields of an answer that does not depend on the user's session, so that browsers send none.
  /// - Parameter isAllowed: whether an origin may read the answer.
  package init(_ named: [String], isAllowed: (String) -> Bool) {
    origin = named.count == 1 && isAllowed(named[0]) ? named[0] : nil
    sendsCookies = false
  }

  /// The fields of the answer. It differs by origin, so `Vary` informs caches.
  /// - Parameter isOptions: whether the request's method is OPTIONS, whose answer no script reads.
  package func fields(isOptions: Bool) -> [(name: String, value: String)] {
    guard let origin else { return [("Vary", "Origin")] }
    let read =
      [("Vary", "Origin"), ("Access-Control-Allow-Origin", origin)]
      + (sendsCookies ? [("Access-Control-Allow-Credentials", "true")] : [])
    return isOptions ? read : read + [("Access-Control-Expose-Headers", Self.exposed)]
  }
}
