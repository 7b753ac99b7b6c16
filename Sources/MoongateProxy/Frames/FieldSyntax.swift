/// The syntax of names and values of HTTP/2 fields, which become lines of HTTP/1.1.
enum FieldSyntax {
  /// Whether the text is a token, and in lower case if it is a field name (RFC 9113 section 8.2).
  static func isName(_ name: String, lowerCase: Bool = true) -> Bool {
    let bytes = name.utf8.span
    for index in bytes.indices {
      guard ByteClass.isToken(bytes[index]), !(lowerCase && bytes[index] &- 0x41 < 26) else { return false }
    }
    return !bytes.isEmpty
  }

  /// Whether the text is a valid field value (RFC 9113 section 8.2.1).
  ///
  /// Attack: in HTTP/1.1 text, a value with a line break would become another header, request or response. A value with
  /// leading or trailing whitespace would change.
  static func isValue(_ value: String) -> Bool {
    let bytes = value.utf8.span
    guard !bytes.isEmpty else { return true }
    if ByteClass.isSpace(bytes[0]) || ByteClass.isSpace(bytes[bytes.count - 1]) { return false }
    for index in bytes.indices where !ByteClass.isValue(bytes[index]) { return false }
    return true
  }

  /// Whether the name belongs to a connection of HTTP/1 (RFC 9113 section 8.2.2). A head with such a field is
  /// malformed.
  static func isOfConnection(_ name: String) -> Bool {
    switch name.utf8.count {
    case 7: name == "upgrade"
    case 10: name == "connection" || name == "keep-alive"
    case 16: name == "proxy-connection"
    case 17: name == "transfer-encoding"
    default: false
    }
  }
}
