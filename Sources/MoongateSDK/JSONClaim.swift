import Foundation

/// What another site says about a user under one name: a value of a JSON text (RFC 8259).
public enum JSONClaim: Equatable, Sendable {
  case null
  case flag(Bool)
  case number(Double)
  case text(String)
  case list([JSONClaim])
  case object([String: JSONClaim])

  /// nil for a value of another type, as with the properties below.
  public var text: String? { if case .text(let text) = self { text } else { nil } }
  public var number: Double? { if case .number(let number) = self { number } else { nil } }
  public var list: [JSONClaim]? { if case .list(let list) = self { list } else { nil } }
  public var members: [String: JSONClaim]? { if case .object(let members) = self { members } else { nil } }
  /// Whether the value is exactly `true`. A text or a number never is.
  public var isTrue: Bool { self == .flag(true) }

  /// The texts of a list that has nothing else; nil for any other value.
  public var texts: [String]? {
    guard let list else { return nil }
    let texts = list.compactMap(\.text)
    return texts.count == list.count ? texts : nil
  }

  /// The value under these names, one inside the other; nil if there is none.
  public subscript(path: [String]) -> JSONClaim? {
    path.reduce(self as JSONClaim?) { value, name in value?.members?[name] }
  }

  /// A short form for operators. Lists and objects are shortened.
  public var shown: String {
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

  /// Why a text is not accepted.
  public enum Problem: Error, Equatable {
    case malformed
    /// The member's name.
    case duplicate(String)
  }

  /// Parses strictly: a member that occurs twice is an error, which Foundation's decoder accepts with one of the two
  /// values.
  ///
  /// Attack: two programs read two different subjects out of one signed token.
  public init(parsing bytes: some Sequence<UInt8>) throws(Problem) {
    var parser = JSONParser(Array(bytes))
    self = try parser.whole()
  }

  /// Parses the members of an object.
  /// - Throws: if the text is another value.
  public static func members(_ bytes: some Sequence<UInt8>) throws(Problem) -> [String: JSONClaim] {
    guard let members = try JSONClaim(parsing: bytes).members else { throw .malformed }
    return members
  }
}

/// The parser, at one position of a text.
private struct JSONParser {
  typealias Problem = JSONClaim.Problem

  private static let deepest = 16

  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The value of the whole text.
  mutating func whole() throws(Problem) -> JSONClaim {
    let value = try value(depth: 0)
    skipSpace()
    guard position == bytes.count else { throw .malformed }
    return value
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

  private mutating func value(depth: Int) throws(Problem) -> JSONClaim {
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

  private mutating func word(_ word: String, _ value: JSONClaim) throws(Problem) -> JSONClaim {
    guard bytes[position...].starts(with: word.utf8) else { throw .malformed }
    position += word.utf8.count
    return value
  }

  private mutating func object(depth: Int) throws(Problem) -> [String: JSONClaim] {
    var members: [String: JSONClaim] = [:]
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

  private mutating func list(depth: Int) throws(Problem) -> [JSONClaim] {
    var values: [JSONClaim] = []
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
