/// Builds a JSON object (RFC 8259). Faster than an encoder, for frequent documents such as refusals and events.
struct JSONObjectText {
  private var bytes = [UInt8(ascii: "{")]

  init() { bytes.reserveCapacity(384) }

  /// The complete object in UTF-8.
  var closed: [UInt8] { bytes + [UInt8(ascii: "}")] }

  mutating func add(_ name: String, _ text: String) {
    begin(name)
    quote(text)
  }

  /// Adds the member unless the text is nil.
  mutating func add(_ name: String, _ text: String?) { if let text { add(name, text) } }

  mutating func add(_ name: String, _ number: some BinaryInteger) {
    begin(name)
    bytes.append(contentsOf: String(number).utf8)
  }

  mutating func add(_ name: String, _ flag: Bool) {
    begin(name)
    bytes.append(contentsOf: (flag ? "true" : "false").utf8)
  }

  mutating func add(_ name: String, _ object: JSONObjectText) {
    begin(name)
    bytes.append(contentsOf: object.closed)
  }

  mutating func add(_ name: String, _ texts: [String]) {
    begin(name)
    bytes.append(UInt8(ascii: "["))
    for (index, text) in texts.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      quote(text)
    }
    bytes.append(UInt8(ascii: "]"))
  }

  private mutating func begin(_ name: String) {
    if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
    quote(name)
    bytes.append(UInt8(ascii: ":"))
  }

  /// Writes a string (section 7). Unicode line separators are escaped too, because they end a line in older JavaScript
  /// and in some logs.
  private mutating func quote(_ text: String) {
    bytes.append(UInt8(ascii: "\""))
    if text.utf8.allSatisfy(Self.isPlain) {
      bytes.append(contentsOf: text.utf8)
    } else {
      for scalar in text.unicodeScalars {
        switch scalar {
        case "\"", "\\": bytes += [UInt8(ascii: "\\"), UInt8(scalar.value)]
        case "\u{0}"..<"\u{20}", "\u{7f}", "\u{2028}", "\u{2029}":
          let digits = String(scalar.value, radix: 16)
          bytes.append(contentsOf: "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".utf8)
        default: bytes.append(contentsOf: String(scalar).utf8)
        }
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    0x20 <= byte && byte < 0x7f && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
  }
}
