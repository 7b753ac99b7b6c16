/// The cookies of a request (RFC 6265 section 5.4), as far as they are ours.
struct CookieHeader: Sendable {
  private let pairs: [(name: String, value: String)]

  /// - Parameter lines: the values of the request's Cookie fields.
  init(_ lines: [String]) {
    // By bytes: a combining mark after `;` would hide the separator from Swift's characters.
    pairs = lines.flatMap { line in
      line.utf8.split(separator: UInt8(ascii: ";")).compactMap { pair in
        guard let equals = pair.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        return (name: Self.trimmed(pair[..<equals]), value: Self.trimmed(pair[pair.index(after: equals)...]))
      }
    }
  }

  /// Every value of the name, in order.
  func values(_ name: String) -> [String] { pairs.filter { $0.name == name }.map(\.value) }

  /// Whether one of the gateway's own cookies is there, under whichever of its names.
  func holds(anyOf names: Set<String>) -> Bool { pairs.contains { names.contains($0.name) } }

  private static func trimmed(_ text: Substring.UTF8View) -> String {
    let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
    return String(decoding: text.drop(while: isSpace).reversed().drop(while: isSpace).reversed(), as: UTF8.self)
  }
}

/// Whether the text has the form of our tokens: 43 characters of base64url. Whatever else a client sends is not looked up.
func isToken(_ text: String) -> Bool {
  text.utf8.count == 43
    && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0) || $0 == 0x2d || $0 == 0x5f }
}
