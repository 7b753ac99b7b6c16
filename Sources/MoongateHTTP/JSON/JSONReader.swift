/// Parses JSON strictly (RFC 8259), so that different parsers cannot interpret the same body differently.
///
/// Attack: `{"code":"1","code":"2"}` means one thing to a filter and another to the program behind it; deeply nested
/// brackets exhaust the stack; half of a surrogate pair or a NUL changes on its way through the system.
package struct JSONReader {
  /// Valid request bodies have two levels.
  private static let deepest = 32

  private let bytes: [UInt8]
  private var at = 0

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// - Throws: `JSONFault` with a message for the client's developer.
  package static func read(_ bytes: [UInt8]) throws(JSONFault) -> JSONValue {
    guard String(validating: bytes, as: UTF8.self) != nil else { throw JSONFault(reason: "The request is not UTF-8.") }
    var reader = JSONReader(bytes)
    let value = try reader.value(depth: 0)
    reader.skipSpace()
    guard reader.at == bytes.count else { throw JSONFault(reason: "The request holds more than one JSON value.") }
    return value
  }

  private static let notJSON = JSONFault(reason: "The request is not JSON.")

  private var next: UInt8? { at < bytes.count ? bytes[at] : nil }

  private mutating func skipSpace() {
    while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d { at += 1 }
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    at += 1
    return true
  }

  /// - Parameter allowsNUL: whether NUL is allowed, as in passwords.
  private mutating func value(depth: Int, allowsNUL: Bool = false) throws(JSONFault) -> JSONValue {
    guard depth < Self.deepest else { throw JSONFault(reason: "The request is nested too deeply.") }
    skipSpace()
    switch next {
    case UInt8(ascii: "{"): return try object(depth: depth)
    case UInt8(ascii: "["): return try list(depth: depth)
    case UInt8(ascii: "\""): return .text(try text(allowsNUL: allowsNUL))
    case UInt8(ascii: "t"): return try word("true", .flag(true))
    case UInt8(ascii: "f"): return try word("false", .flag(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    default: return .number(try number())
    }
  }

  private mutating func word(_ word: StaticString, _ value: JSONValue) throws(JSONFault) -> JSONValue {
    let end = at + word.utf8CodeUnitCount
    guard end <= bytes.count, bytes[at..<end].elementsEqual("\(word)".utf8) else { throw Self.notJSON }
    at = end
    return value
  }

  private mutating func object(depth: Int) throws(JSONFault) -> JSONValue {
    at += 1
    var members: [JSONMember] = []
    var names: Set<String> = []
    skipSpace()
    if take(UInt8(ascii: "}")) { return .object([]) }
    while true {
      skipSpace()
      guard next == UInt8(ascii: "\"") else { throw Self.notJSON }
      let name = try text()
      guard names.insert(name).inserted else { throw JSONFault(reason: "The request names a field twice.") }
      skipSpace()
      guard take(UInt8(ascii: ":")) else { throw Self.notJSON }
      members.append(JSONMember(name: name, value: try value(depth: depth + 1, allowsNUL: name == "password")))
      skipSpace()
      if take(UInt8(ascii: "}")) { return .object(members) }
      guard take(UInt8(ascii: ",")) else { throw Self.notJSON }
    }
  }

  private mutating func list(depth: Int) throws(JSONFault) -> JSONValue {
    at += 1
    var items: [JSONValue] = []
    skipSpace()
    if take(UInt8(ascii: "]")) { return .list([]) }
    while true {
      items.append(try value(depth: depth + 1))
      skipSpace()
      if take(UInt8(ascii: "]")) { return .list(items) }
      guard take(UInt8(ascii: ",")) else { throw Self.notJSON }
    }
  }

  private mutating func number() throws(JSONFault) -> String {
    let start = at
    _ = take(UInt8(ascii: "-"))
    if !take(UInt8(ascii: "0")) { guard digits() > 0 else { throw Self.notJSON } }
    if take(UInt8(ascii: ".")) { guard digits() > 0 else { throw Self.notJSON } }
    if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
      if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
      guard digits() > 0 else { throw Self.notJSON }
    }
    return String(decoding: bytes[start..<at], as: UTF8.self)
  }

  private mutating func digits() -> Int {
    let start = at
    while let byte = next, (0x30...0x39).contains(byte) { at += 1 }
    return at - start
  }

  private mutating func text(allowsNUL: Bool = false) throws(JSONFault) -> String {
    at += 1
    var text: [UInt8] = []
    while let byte = next {
      at += 1
      switch byte {
      case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"): text += try escape(allowsNUL: allowsNUL)
      case ..<0x20: throw Self.notJSON
      default: text.append(byte)
      }
    }
    throw Self.notJSON
  }

  private mutating func escape(allowsNUL: Bool) throws(JSONFault) -> [UInt8] {
    guard let byte = next else { throw Self.notJSON }
    at += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
    case UInt8(ascii: "b"): return [0x08]
    case UInt8(ascii: "f"): return [0x0c]
    case UInt8(ascii: "n"): return [0x0a]
    case UInt8(ascii: "r"): return [0x0d]
    case UInt8(ascii: "t"): return [0x09]
    case UInt8(ascii: "u"):
      var unit = try hex()
      if (0xd800..<0xdc00).contains(unit) {
        guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else {
          throw JSONFault(reason: "The request holds half a character.")
        }
        let low = try hex()
        guard (0xdc00..<0xe000).contains(low) else { throw JSONFault(reason: "The request holds half a character.") }
        unit = 0x10000 + (unit - 0xd800) << 10 + (low - 0xdc00)
      }
      guard unit != 0 || allowsNUL else { throw JSONFault(reason: "The request holds a NUL character.") }
      guard let scalar = Unicode.Scalar(unit) else { throw JSONFault(reason: "The request holds half a character.") }
      return Array(String(Character(scalar)).utf8)
    default: throw Self.notJSON
    }
  }

  private mutating func hex() throws(JSONFault) -> UInt32 {
    var unit: UInt32 = 0
    for _ in 0..<4 {
      guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { throw Self.notJSON }
      unit = unit << 4 | UInt32(digit)
      at += 1
    }
    return unit
  }
}

/// The body is not valid JSON.
package struct JSONFault: Error, Sendable, Equatable {
  /// A sentence.
  let reason: String
}
