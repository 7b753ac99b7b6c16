import NIOCore
import NIOHPACK

/// The head of an HTTP/2 request as the same request's HTTP/1.1 text.
///
/// There is one reader of heads, and one set of rules for what is in them: `RequestDecoder` and what comes behind it.
/// So a stream's head is written out and read by it like any other; what is longer than its limit, names two hosts or
/// two lengths, or CONNECT, is refused there. What this refuses itself is whatever would change its meaning by being
/// written out.
///
/// Values that are no UTF-8 come here with U+FFFD in place of the bytes that are none: that is how the library reads
/// them. The gateway itself acts upon none of those.
enum RequestText {
  /// How the rest of a stream follows its head.
  enum Body {
    case none, length, chunked
  }

  /// - Parameter isWhole: whether no body follows.
  /// - Returns: nil for a head that is malformed by RFC 9113 section 8.2 and 8.3.
  static func write(_ headers: HPACKHeaders, isWhole: Bool) -> (text: ByteBuffer, body: Body, isHead: Bool)? {
    var method: String?
    var scheme: String?
    var authority: String?
    var path: String?
    var fields = ByteBuffer()
    fields.reserveCapacity(512)
    var hosts: [String] = []
    var cookies: [String] = []
    var hasLength = false
    for (name, value, _) in headers {
      if name.utf8.first == UInt8(ascii: ":") {
        switch name {
        case ":method": guard method == nil else { return nil }; method = value
        case ":scheme": guard scheme == nil else { return nil }; scheme = value
        case ":authority": guard authority == nil else { return nil }; authority = value
        case ":path": guard path == nil else { return nil }; path = value
        // `:protocol` too: there is no extended CONNECT here (RFC 8441).
        default: return nil
        }
        continue
      }
      guard isName(name), isValue(value) else { return nil }
      switch meaning(of: name) {
      case .host: hosts.append(value)
      // RFC 9113 section 8.2.3: the crumbs are one field again, so that two cookies of our name are seen as two.
      case .cookie: cookies.append(value)
      case .forbidden: return nil
      case .length:
        hasLength = true
        add(name, value, to: &fields)
      case .other: add(name, value, to: &fields)
      }
    }
    guard let method, isName(method, lowerCase: false) else { return nil }
    if method == "CONNECT" {
      path = path ?? authority
      scheme = scheme ?? "https"
    }
    guard let path, isTarget(path), let scheme, scheme == "https" || scheme == "http" else { return nil }
    if let authority, !hosts.contains(authority) {
      guard isValue(authority) else { return nil }
      hosts.insert(authority, at: 0)
    }
    var text = ByteBuffer()
    text.reserveCapacity(fields.readableBytes + path.utf8.count + 256)
    text.writeString(method)
    text.writeStaticString(" ")
    text.writeString(path)
    text.writeStaticString(" HTTP/1.1\r\n")
    for host in hosts { add("host", host, to: &text) }
    text.writeImmutableBuffer(fields)
    if let first = cookies.first {
      add("cookie", cookies.count == 1 ? first : cookies.joined(separator: "; "), to: &text)
    }
    let body: Body = isWhole ? .none : hasLength ? .length : .chunked
    if body == .chunked { text.writeStaticString("transfer-encoding: chunked\r\n") }
    text.writeStaticString("\r\n")
    return (text, body, method == "HEAD")
  }

  /// Whether these are trailers: fields that are well formed, and no pseudo-header among them (RFC 9113 section 8.1).
  static func areTrailers(_ headers: HPACKHeaders) -> Bool {
    headers.allSatisfy { isName($0.name) && isValue($0.value) }
  }

  private static func add(_ name: String, _ value: String, to text: inout ByteBuffer) {
    text.writeString(name)
    text.writeStaticString(": ")
    text.writeString(value)
    text.writeStaticString("\r\n")
  }

  /// What the field's name means for how the request is written.
  private enum Meaning {
    case host, cookie, length, forbidden, other
  }

  private static func meaning(of name: String) -> Meaning {
    switch name.utf8.count {
    case 4: name == "host" ? .host : .other
    case 6: name == "cookie" ? .cookie : .other
    case 7: name == "upgrade" ? .forbidden : .other
    case 10: name == "connection" || name == "keep-alive" ? .forbidden : .other
    case 14: name == "content-length" ? .length : .other
    case 16: name == "proxy-connection" ? .forbidden : .other
    case 17: name == "transfer-encoding" ? .forbidden : .other
    default: .other
    }
  }

  /// A token; of a field's name in lower case (RFC 9113 section 8.2).
  private static func isName(_ name: String, lowerCase: Bool = true) -> Bool {
    let bytes = name.utf8.span
    for index in bytes.indices {
      guard ByteClass.isToken(bytes[index]), !(lowerCase && bytes[index] &- 0x41 < 26) else { return false }
    }
    return !bytes.isEmpty
  }

  /// RFC 9113 section 8.2.1.
  ///
  /// Attack: a value with a line end in it would be a header, or a request, of its own where it is written out. One
  /// with a blank at its end would be another value there.
  private static func isValue(_ value: String) -> Bool {
    let bytes = value.utf8.span
    guard !bytes.isEmpty else { return true }
    if ByteClass.isSpace(bytes[0]) || ByteClass.isSpace(bytes[bytes.count - 1]) { return false }
    for index in bytes.indices where !ByteClass.isValue(bytes[index]) { return false }
    return true
  }

  private static func isTarget(_ path: String) -> Bool {
    let bytes = path.utf8.span
    for index in bytes.indices where bytes[index] &- 0x21 >= 0x5e { return false }
    return !bytes.isEmpty
  }
}
