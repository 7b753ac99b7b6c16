/// A JSON value (RFC 8259) whose members keep their order.
package enum JSONValue: Sendable, Equatable {
  case null
  case flag(Bool)
  /// As it was written.
  case number(String)
  case text(String)
  case list([JSONValue])
  case object([JSONMember])

  /// An object from names and values.
  package static func members(_ members: KeyValuePairs<String, JSONValue>) -> JSONValue {
    .object(members.map { JSONMember(name: $0.key, value: $0.value) })
  }

  package static func number(_ number: Int) -> JSONValue { .number(String(number)) }

  /// The text, or null.
  package static func optional(_ text: String?) -> JSONValue { text.map { .text($0) } ?? .null }

  /// The number, or null.
  package static func optional(_ number: Int?) -> JSONValue { number.map { .number($0) } ?? .null }

  /// The member of an object.
  package subscript(name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name == name }?.value
  }

  /// Compact UTF-8 text.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    write(to: &bytes)
    return bytes
  }

  private func write(to bytes: inout [UInt8]) {
    switch self {
    case .null: bytes += "null".utf8
    case .flag(let flag): bytes += (flag ? "true" : "false").utf8
    case .number(let number): bytes += number.utf8
    case .text(let text): Self.write(text, to: &bytes)
    case .list(let items):
      bytes.append(UInt8(ascii: "["))
      for (index, item) in items.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        item.write(to: &bytes)
      }
      bytes.append(UInt8(ascii: "]"))
    case .object(let members):
      bytes.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        Self.write(member.name, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
        member.value.write(to: &bytes)
      }
      bytes.append(UInt8(ascii: "}"))
    }
  }

  private static let hexDigits = Array("0123456789abcdef".utf8)

  private static func write(_ text: String, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    // Most texts are copied at once.
    if text.utf8.allSatisfy(isPlain) {
      bytes += text.utf8
    } else {
      for byte in text.utf8 { write(byte, to: &bytes) }
    }
    bytes.append(UInt8(ascii: "\""))
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    0x20 <= byte && byte != 0x7f && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
  }

  private static func write(_ byte: UInt8, to bytes: inout [UInt8]) {
    if isPlain(byte) {
      bytes.append(byte)
    } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
      bytes += [UInt8(ascii: "\\"), byte]
    } else {
      bytes += "\\u00".utf8 + [hexDigits[Int(byte >> 4)], hexDigits[Int(byte & 15)]]
    }
  }
}

/// A member of an object.
package struct JSONMember: Sendable, Equatable {
  package let name: String
  package let value: JSONValue

  package init(name: String, value: JSONValue) {
    self.name = name
    self.value = value
  }
}
