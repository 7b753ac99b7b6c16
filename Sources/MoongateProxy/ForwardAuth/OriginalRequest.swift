import MoongateCore
import NIOCore

/// The original request of a forward-auth request. All ranges refer to the bytes of the proxy's request.
///
/// Attack: a client sends `X-Forwarded-Uri: /public` itself, so that the proxy adds a second value and the gateway
/// judges the first. Therefore method, host and target must occur exactly once, and of the scheme the last value counts
/// (`ForwardingFields`), which is the proxy's. A dialect ignores the headers of others.
///
/// Attack: `Host: closed.example,open.example`, which the proxy passes on as one value. The gateway would judge the
/// last host, and the proxy chooses the service by the first. Therefore a list of hosts is refused.
struct OriginalRequest {
  let method: Range<Int>
  /// The path, without the query. Empty means `/`: an absolute URL can omit it.
  let path: Range<Int>
  /// The query, after `?`.
  let query: Range<Int>?
  let isSecure: Bool
  let host: RequestHost

  /// Why a forward-auth request cannot be answered.
  enum Fault: Error {
    /// A header is missing, repeated or malformed.
    case malformed(String)
    /// A header that every trusted proxy may send cannot be read. The operator is told.
    case forwarding(ForwardingFault)
  }

  /// - Parameters:
  ///   - rest: the part of the path after the dialect's name.
  ///   - hostOf: parses and checks a host.
  init(
    _ dialect: ForwardDialect, _ head: RequestHead, rest: Range<Int>, hostOf: (Range<Int>) -> RequestHost?
  ) throws(Fault) {
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
      let forwarding = head.forwardingFields
      method = try Self.only("x-forwarded-method", head, bytes)
      isSecure = try Self.isSecure(forwarding, bytes)
      let address = try Self.only("x-forwarded-uri", head, bytes)
      guard !address.isEmpty, bytes[address.lowerBound] == UInt8(ascii: "/") else {
        throw .malformed("X-Forwarded-Uri is not a path")
      }
      (path, query) = try Self.target(bytes, address)
      host = try Self.host(forwarding, bytes, hostOf)
    case .envoy:
      method = head.methodName
      isSecure = try Self.isSecure(head.forwardingFields, bytes)
      path = rest
      query = head.query
      // The Host of Envoy's request is the original one.
      guard let own = head.host, let found = hostOf(own) else { throw .malformed("no Host") }
      host = found
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
  private static func only(_ name: StaticString, _ head: RequestHead, _ bytes: Span<UInt8>) throws(Fault)
    -> Range<Int>
  {
    var found: Range<Int>?
    for field in head.fields where field.kind == .reserved {
      guard ByteClass.equal(bytes, field.name, name) else { continue }
      guard found == nil else { throw .malformed("more than one \(name)") }
      found = field.value
    }
    guard let found else { throw .malformed("no \(name)") }
    return found
  }

  private static func isSecure(_ fields: ForwardingFields, _ bytes: Span<UInt8>) throws(Fault) -> Bool {
    let found: Bool?
    do throws(ForwardingFault) { found = try fields.isSecure(bytes) } catch { throw .forwarding(error) }
    guard let found else { throw .malformed("no x-forwarded-proto") }
    return found
  }

  /// The host that `X-Forwarded-Host` names, which must not be a list.
  private static func host(
    _ fields: ForwardingFields, _ bytes: Span<UInt8>, _ hostOf: (Range<Int>) -> RequestHost?
  ) throws(Fault) -> RequestHost {
    guard !fields.hosts.isEmpty else { throw .malformed("no x-forwarded-host") }
    guard let found = fields.hosts.only else { throw .malformed("more than one x-forwarded-host") }
    guard let host = hostOf(found) else { throw .forwarding(ForwardingFault(.host, bytes, found)) }
    return host
  }

  /// Splits `http://authority/path?query` into its parts.
  private static func split(
    _ bytes: Span<UInt8>, _ address: Range<Int>
  ) throws(Fault) -> (isSecure: Bool, authority: Range<Int>, target: Range<Int>) {
    let colon = address.first { bytes[$0] == UInt8(ascii: ":") } ?? address.upperBound
    let authority = colon + 3
    guard authority <= address.upperBound, ByteClass.equalCase(bytes, colon..<authority, "://"),
      let isSecure = ForwardingFields.isSecure(scheme: bytes.extracting(address.lowerBound..<colon))
    else { throw .malformed("X-Original-URL is not an absolute URL of HTTP or WebSocket") }
    var end = authority
    while end < address.upperBound, bytes[end] != UInt8(ascii: "/"), bytes[end] != UInt8(ascii: "?") { end += 1 }
    return (isSecure, authority..<end, end..<address.upperBound)
  }

  /// Splits path and query. The path is checked with the route; the query may contain only bytes that a request line
  /// allows.
  private static func target(_ bytes: Span<UInt8>, _ target: Range<Int>) throws(Fault) -> (
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
  ///   - normalPath: the original path as routes match it.
  ///   - client: the client's address, not that of the proxy.
  init(_ original: OriginalRequest, in head: RequestHead, normalPath: RequestPath, client: ClientAddress) {
    self.head = head
    method = original.method
    path = original.path
    self.normalPath = normalPath
    query = original.query
    origin = RequestOrigin(address: client, isSecure: original.isSecure, host: original.host.host)
    isForwarded = true
  }
}
