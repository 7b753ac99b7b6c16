import MoongateCore
import NIOCore

/// The original request that a proxy asks about. Everything lies in the bytes of the proxy's own request.
///
/// Attack: a client that sends `X-Forwarded-Uri: /public` itself, so that the proxy's own comes second and the gateway
/// judges the first. So each header that a dialect asks by must be there exactly once, no dialect reads another's, and
/// what cannot be read in one way only is never a yes.
struct ForwardQuestion {
  let method: Range<Int>
  /// Up to the query; empty where an absolute address has none: `/` is meant.
  let path: Range<Int>
  /// Behind the `?`.
  let query: Range<Int>?
  let isSecure: Bool
  let host: RequestHost

  /// - Parameters:
  ///   - rest: what follows the dialect's name in the path.
  ///   - ownHost: the Host of the proxy's request, which is the original one's with Envoy.
  ///   - hostOf: judges a spelling of a host.
  /// - Throws: where a header is missing, is there twice, or is malformed.
  init(
    _ dialect: ForwardDialect, _ head: RequestHead, _ bytes: Span<UInt8>, rest: Range<Int>, ownHost: RequestHost,
    hostOf: (Range<Int>) -> RequestHost?
  ) throws(MessageFault) {
    switch dialect {
    case .nginx:
      method = try Self.only("x-original-method", head, bytes)
      let address = try Self.only("x-original-url", head, bytes)
      let split = try Self.split(bytes, address)
      isSecure = split.isSecure
      (path, query) = try Self.target(bytes, split.target)
      guard let found = hostOf(split.authority) else { throw .malformed("the host of X-Original-URL is malformed") }
      host = found
    case .traefik, .caddy, .haproxy:
      method = try Self.only("x-forwarded-method", head, bytes)
      isSecure = try Self.scheme(bytes, try Self.only("x-forwarded-proto", head, bytes))
      let address = try Self.only("x-forwarded-uri", head, bytes)
      guard !address.isEmpty, bytes[address.lowerBound] == UInt8(ascii: "/") else {
        throw .malformed("X-Forwarded-Uri is no path")
      }
      (path, query) = try Self.target(bytes, address)
      guard let found = hostOf(try Self.only("x-forwarded-host", head, bytes)) else {
        throw .malformed("X-Forwarded-Host is malformed")
      }
      host = found
    case .envoy:
      method = head.methodName
      isSecure = try Self.scheme(bytes, try Self.only("x-forwarded-proto", head, bytes))
      path = rest
      query = head.query
      host = ownHost
    }
    guard !method.isEmpty, method.allSatisfy({ ByteClass.isToken(bytes[$0]) }) else {
      throw .malformed("a method that is not a token")
    }
  }

  /// The value of the one field of this name, in lower case here.
  private static func only(_ name: StaticString, _ head: RequestHead, _ bytes: Span<UInt8>) throws(MessageFault)
    -> Range<Int>
  {
    var found: Range<Int>?
    for field in head.fields {
      switch field.kind {
      case .reserved, .forwardedProto, .forwardedHost: break
      default: continue
      }
      guard ByteClass.equal(bytes, field.name, name) else { continue }
      guard found == nil else { throw .malformed("more than one \(name)") }
      found = field.value
    }
    guard let found else { throw .malformed("no \(name)") }
    return found
  }

  private static func scheme(_ bytes: Span<UInt8>, _ value: Range<Int>) throws(MessageFault) -> Bool {
    if ByteClass.equal(bytes, value, "https") { return true }
    guard ByteClass.equal(bytes, value, "http") else { throw .malformed("X-Forwarded-Proto is neither http nor https") }
    return false
  }

  /// `http://authority/path?query` in its parts.
  private static func split(
    _ bytes: Span<UInt8>, _ address: Range<Int>
  ) throws(MessageFault) -> (isSecure: Bool, authority: Range<Int>, target: Range<Int>) {
    let start = address.lowerBound
    let isSecure = address.count > 8 && ByteClass.equal(bytes, start..<start + 8, "https://")
    guard isSecure || address.count > 7 && ByteClass.equal(bytes, start..<start + 7, "http://") else {
      throw .malformed("X-Original-URL is no absolute http or https address")
    }
    let authority = start + (isSecure ? 8 : 7)
    var end = authority
    while end < address.upperBound, bytes[end] != UInt8(ascii: "/"), bytes[end] != UInt8(ascii: "?") { end += 1 }
    return (isSecure, authority..<end, end..<address.upperBound)
  }

  /// Path and query. The path's form is judged with the route; the query must hold what a request line may hold.
  private static func target(_ bytes: Span<UInt8>, _ target: Range<Int>) throws(MessageFault) -> (
    path: Range<Int>, query: Range<Int>?
  ) {
    var end = target.lowerBound
    while end < target.upperBound, bytes[end] != UInt8(ascii: "?") { end += 1 }
    guard end < target.upperBound else { return (target, nil) }
    for index in end..<target.upperBound where bytes[index] &- 0x21 >= 0x5e || bytes[index] == UInt8(ascii: "#") {
      throw .malformed("the original address holds a byte that no address may hold")
    }
    return (target.lowerBound..<end, end + 1..<target.upperBound)
  }
}
