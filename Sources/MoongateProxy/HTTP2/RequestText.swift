import NIOCore
import NIOHPACK

/// Converts the head of an HTTP/2 request to HTTP/1.1 text.
///
/// `RequestDecoder` parses that text, so all requests have the same rules. It refuses heads over its limit, several
/// hosts or lengths, and CONNECT. This type refuses only fields whose meaning would change by the conversion.
///
/// The library decodes values as UTF-8 and replaces invalid bytes with U+FFFD. The gateway does not interpret such
/// values.
enum RequestText {
  /// The body that a head declares.
  enum Body: Equatable {
    case empty
    /// The number of bytes that are missing.
    case length(Int)
    case chunked
  }

  /// Converts the head.
  /// - Parameter isWhole: whether the head ends the request.
  /// - Returns: nil if the head is malformed by RFC 9113 section 8.2 or 8.3.
  static func write(_ headers: HPACKHeaders, isWhole: Bool) -> (text: ByteBuffer, body: Body, isHead: Bool)? {
    var method: String?
    var scheme: String?
    var authority: String?
    var path: String?
    var fields = ByteBuffer()
    fields.reserveCapacity(512)
    var hosts: [String] = []
    var cookies: String?
    var length: String?
    for (name, value, _) in headers {
      if name.utf8.first == UInt8(ascii: ":") {
        switch name {
        case ":method": guard method == nil else { return nil }; method = value
        case ":scheme": guard scheme == nil else { return nil }; scheme = value
        case ":authority": guard authority == nil else { return nil }; authority = value
        case ":path": guard path == nil else { return nil }; path = value
        // Includes `:protocol`: extended CONNECT (RFC 8441) is not supported.
        default: return nil
        }
        continue
      }
      guard FieldSyntax.isName(name), FieldSyntax.isValue(value) else { return nil }
      switch meaning(of: name) {
      case .host: hosts.append(value)
      // RFC 9113 section 8.2.3: join the cookie fields, so that two cookies with the gateway's name are detected.
      case .cookie: if cookies == nil { cookies = value } else { cookies?.append("; " + value) }
      case .forbidden: return nil
      case .length:
        length = value
        fields.writeFieldLine(name, value)
      case .other: fields.writeFieldLine(name, value)
      }
    }
    guard let method, FieldSyntax.isName(method, lowerCase: false) else { return nil }
    if method == "CONNECT" {
      path = path ?? authority
      scheme = scheme ?? "https"
    } else if path != "*", path?.utf8.first != UInt8(ascii: "/") {
      return nil
    }
    guard let path, isTarget(path), let scheme, scheme == "https" || scheme == "http" else { return nil }
    if let known = authority, hosts.contains(known) { authority = nil }
    if let authority, !FieldSyntax.isValue(authority) { return nil }
    var text = ByteBuffer()
    text.reserveCapacity(fields.readableBytes + path.utf8.count + 256)
    text.writeString(method)
    text.writeStaticString(" ")
    text.writeString(path)
    text.writeStaticString(" HTTP/1.1\r\n")
    if let authority { text.writeFieldLine("host", authority) }
    for host in hosts { text.writeFieldLine("host", host) }
    text.writeImmutableBuffer(fields)
    if let cookies { text.writeFieldLine("cookie", cookies) }
    let body = body(isWhole: isWhole, length: length)
    if body == .chunked { text.writeStaticString("transfer-encoding: chunked\r\n") }
    text.writeStaticString("\r\n")
    return (text, body, method == "HEAD")
  }

  private static func body(isWhole: Bool, length: String?) -> Body {
    if isWhole { return .empty }
    guard let length else { return .chunked }
    // `RequestDecoder` refuses a length that is not a number.
    guard length.utf8.allSatisfy(ByteClass.isDigit), let count = Int(length) else { return .empty }
    return .length(count)
  }

  /// The role of a field in the conversion.
  private enum Meaning {
    case host, cookie, length, forbidden, other
  }

  private static func meaning(of name: String) -> Meaning {
    switch name.utf8.count {
    case 4: name == "host" ? .host : .other
    case 6: name == "cookie" ? .cookie : .other
    case 14: name == "content-length" ? .length : .other
    default: FieldSyntax.isOfConnection(name) ? .forbidden : .other
    }
  }

  private static func isTarget(_ path: String) -> Bool {
    let bytes = path.utf8.span
    for index in bytes.indices where bytes[index] &- 0x21 >= 0x5e { return false }
    return !bytes.isEmpty
  }
}
