import Foundation

/// What another site says about a user under one name: a value of a JSON text (RFC 8259).
public enum JSONClaim: Equatable, Sendable {
  case null
  case flag(Bool)
  case number(Double)
  /// A whole number of 2^53 or more, of which a `Double` would lose digits: `9007199254740993`.
  case integer(digits: String)
  case text(String)
  case list([JSONClaim])
  case object([String: JSONClaim])

  /// nil for a value of another type, as with the properties below.
  public var text: String? { if case .text(let text) = self { text } else { nil } }
  /// Of a whole number of 2^53 or more, the nearest one. For an identifier, use `wholeNumber`.
  public var number: Double? {
    switch self {
    case .number(let number): number
    case .integer(let digits): Double(digits)
    default: nil
    }
  }
  /// All digits of a whole number; nil if a `Double` may have lost some, as of `1e16`.
  public var wholeNumber: String? {
    switch self {
    case .number(let number): number.magnitude < 0x1p53 ? Int64(exactly: number).map { "\($0)" } : nil
    case .integer(let digits): digits
    default: nil
    }
  }
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
    case .number(let number): wholeNumber ?? "\(number)"
    case .integer(let digits): digits
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
    default: return try number()
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

  /// A string. Foundation decodes one with escapes.
  private mutating func string() throws(Problem) -> String {
    let start = position
    position += 1
    var isEscaped = false
    while let byte = next {
      position += 1
      if byte == UInt8(ascii: "\\") {
        isEscaped = true
        position += 1
      } else if byte == UInt8(ascii: "\"") {
        guard isEscaped else {
          guard let text = String(validating: bytes[start + 1..<position - 1], as: UTF8.self) else { throw .malformed }
          return text
        }
        let quoted = bytes[start..<min(position, bytes.count)]
        guard let texts = try? JSONDecoder().decode([String].self, from: Data("[".utf8 + quoted + "]".utf8)),
          texts.count == 1
        else { throw .malformed }
        return texts[0]
      } else if byte < 0x20 {
        throw .malformed
      }
    }
    throw .malformed
  }

  /// A number (RFC 8259 section 6).
  private mutating func number() throws(Problem) -> JSONClaim {
    let start = position
    _ = take(UInt8(ascii: "-"))
    let isZero = take(UInt8(ascii: "0"))
    guard isZero != skipDigits() else { throw .malformed }
    let isWhole = next != UInt8(ascii: ".") && next != UInt8(ascii: "e") && next != UInt8(ascii: "E")
    if take(UInt8(ascii: ".")), !skipDigits() { throw .malformed }
    if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
      if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
      guard skipDigits() else { throw .malformed }
    }
    let digits = String(decoding: bytes[start..<position], as: UTF8.self)
    guard let number = Double(digits), number.isFinite else { throw .malformed }
    return isWhole && number.magnitude >= 0x1p53 ? .integer(digits: digits) : .number(number)
  }

  /// - Returns: whether there is one.
  private mutating func skipDigits() -> Bool {
    let start = position
    while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
    return position > start
  }
}
