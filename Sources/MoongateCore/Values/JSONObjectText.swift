/// Builds a JSON object (RFC 8259). Faster than an encoder, for frequent documents such as refusals, events and flows.
struct JSONObjectText {
  /// What is escaped in strings besides the characters that JSON requires.
  enum Escapes {
    /// DEL and the Unicode line separators, which end a line in older JavaScript and in some logs.
    case lineSeparators
    /// The slash, and control characters in their short form. Strings are then byte for byte those of `JSONEncoder`.
    case encoder
  }

  private var bytes: [UInt8] = []
  private let escapes: Escapes

  private init(_ escapes: Escapes, capacity: Int) {
    self.escapes = escapes
    bytes.reserveCapacity(capacity)
  }

  /// An object to which members are added, for a document that others read.
  init() {
    self.init(.lineSeparators, capacity: 384)
    bytes.append(UInt8(ascii: "{"))
  }

  /// The complete object in UTF-8.
  var closed: [UInt8] { bytes + [UInt8(ascii: "}")] }

  /// The JSON of a record that is stored: the same that `JSONEncoder` writes, except for the order of members.
  ///
  /// Stored records are searched for strings that `JSONEncoder` has encoded (`FlowTraces`).
  static func record(_ value: some JSONWritable) -> [UInt8] {
    var text = Self(.encoder, capacity: 2048)
    value.write(to: &text)
    return text.bytes
  }

  /// Adds the member unless the value is nil.
  mutating func add(_ name: String, _ value: (some JSONWritable)?) {
    guard let value else { return }
    separate()
    append(name)
    bytes.append(UInt8(ascii: ":"))
    value.write(to: &self)
  }

  /// Adds an item of a list.
  mutating func add(_ item: some JSONWritable) {
    separate()
    item.write(to: &self)
  }

  /// Writes a comma unless the object or list has just begun.
  private mutating func separate() {
    switch bytes.last {
    case UInt8(ascii: "{"), UInt8(ascii: "["): break
    default: bytes.append(UInt8(ascii: ","))
    }
  }
}

// MARK: - Values

extension JSONObjectText {
  /// Writes an object.
  mutating func appendObject(_ addMembers: (inout Self) -> Void) {
    bytes.append(UInt8(ascii: "{"))
    addMembers(&self)
    bytes.append(UInt8(ascii: "}"))
  }

  /// Writes a list.
  mutating func appendList(_ addItems: (inout Self) -> Void) {
    bytes.append(UInt8(ascii: "["))
    addItems(&self)
    bytes.append(UInt8(ascii: "]"))
  }

  /// Writes a value that is already JSON.
  mutating func append(json: some Sequence<UInt8>) { bytes.append(contentsOf: json) }

  /// Writes a string (section 7).
  mutating func append(_ text: String) {
    bytes.append(UInt8(ascii: "\""))
    switch escapes {
    case .lineSeparators: appendEscapingLineSeparators(text)
    case .encoder: appendAsEncoder(text)
    }
    bytes.append(UInt8(ascii: "\""))
  }

  private mutating func appendEscapingLineSeparators(_ text: String) {
    guard !text.utf8.allSatisfy(Self.isPlain) else { return bytes.append(contentsOf: text.utf8) }
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": bytes += [UInt8(ascii: "\\"), UInt8(scalar.value)]
      case "\u{0}"..<"\u{20}", "\u{7f}", "\u{2028}", "\u{2029}": appendHexadecimal(scalar.value)
      default: bytes.append(contentsOf: String(scalar).utf8)
      }
    }
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    0x20 <= byte && byte < 0x7f && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
  }

  private mutating func appendAsEncoder(_ text: String) {
    var text = text
    text.withUTF8 { utf8 in
      var rest = utf8[...]
      while let index = rest.firstIndex(where: Self.isEscapedByEncoder) {
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: rest[..<index]))
        appendEscape(rest[index])
        rest = rest[(index + 1)...]
      }
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: rest))
    }
  }

  private static func isEscapedByEncoder(_ byte: UInt8) -> Bool {
    byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte == UInt8(ascii: "/")
  }

  private mutating func appendEscape(_ byte: UInt8) {
    switch byte {
    case 0x08: bytes += "\\b".utf8
    case 0x09: bytes += "\\t".utf8
    case 0x0a: bytes += "\\n".utf8
    case 0x0c: bytes += "\\f".utf8
    case 0x0d: bytes += "\\r".utf8
    case ..<0x20: appendHexadecimal(UInt32(byte))
    default: bytes += [UInt8(ascii: "\\"), byte]
    }
  }

  private mutating func appendHexadecimal(_ scalar: UInt32) {
    let digits = String(scalar, radix: 16)
    bytes.append(contentsOf: "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".utf8)
  }
}
