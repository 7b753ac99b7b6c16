import MoongateCore
import NIOCore

/// A request whose access is to be decided: one to a protected service, or the original request of a forward-auth
/// request.
///
/// All ranges refer to the bytes of `head`. Strings are created only on demand, because most requests need none.
struct AccessRequest {
  /// The head that the client or the asking proxy sent, with the credentials.
  let head: RequestHead
  let method: Range<Int>
  /// The path without the query. Empty means `/`.
  let path: Range<Int>
  /// The same as routes match it.
  let normalPath: RequestPath
  /// The query, after `?`.
  let query: Range<Int>?
  /// Scheme and host of the request, and its client.
  let origin: RequestOrigin
  /// Whether this is a forward-auth request, which needs absolute URLs in both directions.
  let isForwarded: Bool
  /// Whether the request was counted by its account or token before, because it is decided once more with the token for
  /// its service.
  var isRateCounted = false

  /// A request that is to be proxied.
  init(_ head: RequestHead, normalPath: RequestPath, origin: RequestOrigin) {
    self.head = head
    method = head.methodName
    path = head.path
    self.normalPath = normalPath
    query = head.query
    self.origin = origin
    isForwarded = false
  }

  /// Whether the client can be redirected to a page: a navigation, by GET if the request is proxied. It is read only if
  /// the request is not allowed.
  var mayRedirect: Bool { (isForwarded || head.method == .get) && head.isNavigation }

  /// Path and query.
  var target: String { pathText + (query.map { "?" + head.text($0) } ?? "") }

  /// Whether the method only reads (RFC 9110 section 9.2.1).
  var isSafe: Bool {
    let bytes = head.bytes.readableBytesUInt8Span
    return ByteClass.equalCase(bytes, method, "GET") || ByteClass.equalCase(bytes, method, "HEAD")
      || ByteClass.equalCase(bytes, method, "OPTIONS")
  }

  /// Whether there is exactly one Origin header, with the origin of public_url or of the request itself.
  func hasRightOrigin(_ plan: GenerationPlan) -> Bool {
    guard head.count(of: .origin) == 1, let field = head.first(.origin) else { return false }
    let text = head.text(field.value)
    return text == plan.issuer || text == origin.origin
  }

  /// Whether the path is directly below `/`, so that a service worker with this script controls the whole host.
  var isAtRoot: Bool {
    let bytes = head.bytes.readableBytesUInt8Span
    return !path.dropFirst().contains { bytes[$0] == UInt8(ascii: "/") }
  }

  /// The request as policies see it.
  var facts: RequestFacts {
    RequestFacts(
      method: head.text(method), host: origin.host.name, path: pathText, query: query.map { head.text($0) } ?? "")
  }

  private var pathText: String { path.isEmpty ? "/" : head.text(path) }
}
