import Foundation

/// A value of a JSON text.
enum JSONValue: Equatable, Sendable {
  case null
  case flag(Bool)
  case number(Double)
  case text(String)
  case list([JSONValue])
  case object([String: JSONValue])

  var text: String? { if case .text(let text) = self { text } else { nil } }
  var number: Double? { if case .number(let number) = self { number } else { nil } }
  var isTrue: Bool { self == .flag(true) }

  /// The texts of a list that has nothing else; nil for any other value.
  var texts: [String]? {
    guard case .list(let values) = self else { return nil }
    let texts = values.compactMap(\.text)
    return texts.count == values.count ? texts : nil
  }

  /// A short form for operators. Lists and objects are shortened.
  var shown: String {
    switch self {
    case .null: "null"
    case .flag(let flag): "\(flag)"
    case .number(let number): Int64(exactly: number).map { "\($0)" } ?? "\(number)"
    case .text(let text): "\"\(text)\""
    case .list(let values):
      "[\(values.prefix(8).map(\.shown).joined(separator: ", "))\(values.count > 8 ? ", ..." : "")]"
    case .object: "{...}"
    }
  }
}

/// Parses JSON (RFC 8259) strictly: a member that occurs twice is an error, which Foundation's decoder accepts with one
/// of the two values.
///
/// Attack: two programs read two different subjects out of one signed token.
struct JSONParser {
  /// Why a text is not accepted.
  enum Problem: Error, Equatable {
    case malformed
    /// The member's name.
    case duplicate(String)
  }

  private static let deepest = 16

  private let bytes: [UInt8]
  private var position = 0

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The members of a JSON object.
  static func members(_ bytes: some Sequence<UInt8>) throws(Problem) -> [String: JSONValue] {
    var parser = JSONParser(Array(bytes))
    let value = try parser.value(depth: 0)
    parser.skipSpace()
    guard parser.position == parser.bytes.count, case .object(let members) = value else { throw .malformed }
    return members
  }

  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func skipSpace() {
    while let byte = next, [0x20, 0x09, 0x0a, 0x0d].contains(byte) { position += 1 }
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    position += 1
    return true
  }

  private mutating func value(depth: Int) throws(Problem) -> JSONValue {
    guard depth < Self.deepest else { throw .malformed }
    skipSpace()
    switch next {
    case UInt8(ascii: "{"): return .object(try object(depth: depth))
    case UInt8(ascii: "["): return .list(try list(depth: depth))
    case UInt8(ascii: "\""): return .text(try string())
    case UInt8(ascii: "t"): return try word("true", .flag(true))
    case UInt8(ascii: "f"): return try word("false", .flag(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    default: return .number(try number())
    }
  }

  private mutating func word(_ word: String, _ value: JSONValue) throws(Problem) -> JSONValue {
    guard bytes[position...].starts(with: word.utf8) else { throw .malformed }
    position += word.utf8.count
    return value
  }

  private mutating func object(depth: Int) throws(Problem) -> [String: JSONValue] {
    var members: [String: JSONValue] = [:]
    position += 1
    skipSpace()
    if take(UInt8(ascii: "}")) { return members }
    while true {
      skipSpace()
      guard next == UInt8(ascii: "\"") else { throw .malformed }
      let name = try string()
      skipSpace()
      guard take(UInt8(ascii: ":")) else { throw .malformed }
      let value = try value(depth: depth + 1)
      guard members.updateValue(value, forKey: name) == nil else { throw .duplicate(name) }
      skipSpace()
      if take(UInt8(ascii: "}")) { return members }
      guard take(UInt8(ascii: ",")) else { throw .malformed }
    }
  }

  private mutating func list(depth: Int) throws(Problem) -> [JSONValue] {
    var values: [JSONValue] = []
    position += 1
    skipSpace()
    if take(UInt8(ascii: "]")) { return values }
    while true {
      values.append(try value(depth: depth + 1))
      skipSpace()
      if take(UInt8(ascii: "]")) { return values }
      guard take(UInt8(ascii: ",")) else { throw .malformed }
    }
  }

  /// A string or number, whose end is found here and whose content Foundation decodes.
  private func decoded<Value: Decodable>(_ type: Value.Type, _ range: Range<Int>) throws(Problem) -> Value {
    guard let values = try? JSONDecoder().decode([Value].self, from: Data("[".utf8 + bytes[range] + "]".utf8)),
      values.count == 1
    else { throw .malformed }
    return values[0]
  }

  private mutating func string() throws(Problem) -> String {
    let start = position
    position += 1
    while let byte = next {
      position += 1
      if byte == UInt8(ascii: "\\") {
        position += 1
      } else if byte == UInt8(ascii: "\"") {
        return try decoded(String.self, start..<min(position, bytes.count))
      } else if byte < 0x20 {
        throw .malformed
      }
    }
    throw .malformed
  }

  private mutating func number() throws(Problem) -> Double {
    let start = position
    while let byte = next, byte == UInt8(ascii: "-") || "0123456789+.eE".utf8.contains(byte) { position += 1 }
    guard position > start else { throw .malformed }
    return try decoded(Double.self, start..<position)
  }
}
