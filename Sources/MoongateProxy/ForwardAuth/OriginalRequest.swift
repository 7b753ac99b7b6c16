import MoongateCore
import NIOCore

/// The original request of a forward-auth request. All ranges refer to the bytes of the proxy's request.
///
/// Attack: a client sends `X-Forwarded-Uri: /public` itself, so that the proxy adds a second value and the gateway
/// judges the first. Therefore each header of a dialect must occur exactly once, a dialect ignores the headers of
/// others, and an ambiguous request is never allowed.
struct OriginalRequest {
  let method: Range<Int>
  /// The path, without the query. Empty means `/`: an absolute URL can omit it.
  let path: Range<Int>
  /// The query, after `?`.
  let query: Range<Int>?
  let isSecure: Bool
  let host: RequestHost

  /// - Parameters:
  ///   - rest: the part of the path after the dialect's name.
  ///   - ownHost: the Host of the proxy's request; with Envoy, this is the original host.
  ///   - hostOf: parses and checks a host.
  /// - Throws: an error if a header is missing, repeated or malformed.
  init(
    _ dialect: ForwardDialect, _ head: RequestHead, rest: Range<Int>, ownHost: RequestHost,
    hostOf: (Range<Int>) -> RequestHost?
  ) throws(MessageFault) {
    let bytes = head.bytes.readableBytesUInt8Span
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
        throw .malformed("X-Forwarded-Uri is not a path")
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

  /// The request as recorded for the operator. Never contains the query.
  /// - Parameter head: the head of the proxy's request.
  func detail(in head: RequestHead) -> [String: String] {
    [
      "host": host.host.authority, "path": String(head.text(path).prefix(200)),
      "method": String(head.text(method).prefix(20)), "asked": "by forward-auth",
    ]
  }

  /// The value of a header that must occur exactly once. The name is in lower case.
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

  /// Splits `http://authority/path?query` into its parts.
  private static func split(
    _ bytes: Span<UInt8>, _ address: Range<Int>
  ) throws(MessageFault) -> (isSecure: Bool, authority: Range<Int>, target: Range<Int>) {
    let start = address.lowerBound
    let isSecure = address.count > 8 && ByteClass.equal(bytes, start..<start + 8, "https://")
    guard isSecure || address.count > 7 && ByteClass.equal(bytes, start..<start + 7, "http://") else {
      throw .malformed("X-Original-URL is not an absolute http or https URL")
    }
    let authority = start + (isSecure ? 8 : 7)
    var end = authority
    while end < address.upperBound, bytes[end] != UInt8(ascii: "/"), bytes[end] != UInt8(ascii: "?") { end += 1 }
    return (isSecure, authority..<end, end..<address.upperBound)
  }

  /// Splits path and query. The path is checked with the route; the query may contain only bytes that a request line
  /// allows.
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

extension AccessRequest {
  /// The original request of a forward-auth request.
  /// - Parameters:
  ///   - head: the head of the proxy's request.
  ///   - decodedPath: see `RequestPath`.
  ///   - peer: the address of the proxy, which must be trusted.
  init(_ original: OriginalRequest, in head: RequestHead, decodedPath: [UInt8]?, peer: ClientAddress, isBrowser: Bool) {
    self.head = head
    method = original.method
    path = original.path
    self.decodedPath = decodedPath
    query = original.query
    origin = RequestOrigin(address: peer, isSecure: original.isSecure, host: original.host.host)
    mayRedirect = isBrowser
    isForwarded = true
  }
}
