import MoongateCore

/// Finds cookies in a header field, and the gateway's cookies (`GatewayCookies.allNames`) among them.
enum GatewayCookieBytes {
  private static let names = GatewayCookies.allNames

  /// Whether the name in the range is a gateway cookie. `CredentialTests` checks it with every name, and so its test of
  /// the first letter.
  static func isOurs(_ bytes: Span<UInt8>, _ name: Range<Int>) -> Bool {
    guard !name.isEmpty, bytes[name.lowerBound] == UInt8(ascii: "m") || bytes[name.lowerBound] == UInt8(ascii: "_")
    else { return false }
    return names.contains { ByteClass.equalCase(bytes, name, $0) }
  }

  /// Calls the closure for each cookie of a Cookie field with the cookie, its name and its value, without surrounding
  /// whitespace.
  ///
  /// Only `;` separates cookies; quotes have no meaning (RFC 6265 section 5.4). A cookie without `=` has the value nil,
  /// and its text is used as its name, so that a gateway cookie without a value is also removed.
  static func forEach(
    _ bytes: Span<UInt8>, _ value: Range<Int>,
    _ body: (_ cookie: Range<Int>, _ name: Range<Int>, _ value: Range<Int>?) -> Void
  ) {
    var start = value.lowerBound
    while start < value.upperBound {
      var end = start
      while end < value.upperBound, bytes[end] != UInt8(ascii: ";") { end += 1 }
      let cookie = ByteClass.trimmed(bytes, start..<end)
      var nameEnd = cookie.lowerBound
      while nameEnd < cookie.upperBound, bytes[nameEnd] != UInt8(ascii: "=") { nameEnd += 1 }
      if !cookie.isEmpty {
        let value = nameEnd < cookie.upperBound ? ByteClass.trimmed(bytes, nameEnd + 1..<cookie.upperBound) : nil
        body(cookie, ByteClass.trimmed(bytes, cookie.lowerBound..<nameEnd), value)
      }
      start = end + 1
    }
  }

  /// Whether a Set-Cookie field sets a gateway cookie.
  static func isSet(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Bool {
    var end = value.lowerBound
    while end < value.upperBound, bytes[end] != UInt8(ascii: ";") { end += 1 }
    var pair = ByteClass.trimmed(bytes, value.lowerBound..<end)
    // Attack: `=moongate=x` has an empty name, but browsers send it back as `moongate=x`.
    while !pair.isEmpty, bytes[pair.lowerBound] == UInt8(ascii: "=") {
      pair = ByteClass.trimmed(bytes, pair.lowerBound + 1..<pair.upperBound)
    }
    var nameEnd = pair.lowerBound
    while nameEnd < pair.upperBound, bytes[nameEnd] != UInt8(ascii: "=") { nameEnd += 1 }
    return isOurs(bytes, ByteClass.trimmed(bytes, pair.lowerBound..<nameEnd))
  }
}
