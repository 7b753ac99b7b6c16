/// A value of the CBOR subset (RFC 8949) that authenticators use.
enum CBORValue: Equatable {
  /// A positive or negative integer.
  case integer(Int64)
  case bytes([UInt8])
  case text(String)
  case list([CBORValue])
  case map([CBORKey: CBORValue])
  case flag(Bool)
  case null
}

/// The key of a map.
enum CBORKey: Hashable {
  case integer(Int64)
  case text(String)
}

/// Why bytes cannot be decoded.
enum CBORFault: Error, Equatable {
  /// The bytes end within a value.
  case short
  /// A length or number is not in its shortest form, or is too large.
  case number
  /// An item that authenticators do not use: an indefinite length, a tag, a floating-point number, an unassigned simple
  /// value.
  case unsupported
  /// A text that is not UTF-8.
  case text
  /// A key that is repeated, or is neither an integer nor a text.
  case key
  /// Lists and maps are nested too deeply.
  case depth
}

/// A strict decoder of the CTAP2 canonical CBOR form (Client to Authenticator Protocol, section "Message Encoding"):
/// definite lengths, shortest numbers, no tags, no floating-point numbers. The order of map keys is not checked,
/// because some clients do not sort attestation objects.
///
/// Attack: authenticator data can be arbitrary bytes. Lengths are compared with the remaining bytes before any
/// allocation, and the depth is limited.
struct CBORReader {
  /// The depth of an attestation object: object, statement, certificates, and one more for extensions.
  private static let deepest = 5

  private let bytes: ArraySlice<UInt8>
  private(set) var at: Int

  init(_ bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    at = bytes.startIndex
  }

  /// The number of remaining bytes.
  var left: Int { bytes.endIndex - at }

  /// Decodes a single value from all bytes.
  static func read(_ bytes: [UInt8]) throws(CBORFault) -> CBORValue {
    var reader = CBORReader(bytes[...])
    let value = try reader.value()
    guard reader.left == 0 else { throw .unsupported }
    return value
  }

  /// Decodes the next value.
  mutating func value() throws(CBORFault) -> CBORValue { try value(depth: 0) }

  private mutating func value(depth: Int) throws(CBORFault) -> CBORValue {
    guard depth < Self.deepest else { throw .depth }
    guard let head = take(1)?.first else { throw .short }
    let argument = try argument(head & 0x1f)
    switch head >> 5 {
    case 0:
      guard let number = Int64(exactly: argument) else { throw .number }
      return .integer(number)
    case 1:
      guard let number = Int64(exactly: argument) else { throw .number }
      return .integer(-1 - number)
    case 2: return .bytes(Array(try run(argument)))
    case 3:
      guard let text = String(validating: try run(argument), as: UTF8.self) else { throw .text }
      return .text(text)
    case 4:
      var items: [CBORValue] = []
      for _ in 0..<(try count(argument, bytesEach: 1)) { items.append(try value(depth: depth + 1)) }
      return .list(items)
    case 5:
      var members: [CBORKey: CBORValue] = [:]
      for _ in 0..<(try count(argument, bytesEach: 2)) {
        let key: CBORKey
        switch try value(depth: depth + 1) {
        case .integer(let number): key = .integer(number)
        case .text(let text): key = .text(text)
        default: throw .key
        }
        guard members.updateValue(try value(depth: depth + 1), forKey: key) == nil else { throw .key }
      }
      return .map(members)
    case 7 where head == 0xf4: return .flag(false)
    case 7 where head == 0xf5: return .flag(true)
    case 7 where head == 0xf6: return .null
    default: throw .unsupported
    }
  }

  /// The argument of a head, which must be in its shortest form.
  private mutating func argument(_ info: UInt8) throws(CBORFault) -> UInt64 {
    guard info >= 24 else { return UInt64(info) }
    guard info <= 27 else { throw .unsupported }
    let size = 1 << Int(info - 24)
    guard let run = take(size) else { throw .short }
    let number = run.reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    let least: UInt64 = size == 1 ? 24 : 1 << (UInt64(size) * 4)
    guard number >= least else { throw .number }
    return number
  }

  private mutating func run(_ length: UInt64) throws(CBORFault) -> ArraySlice<UInt8> {
    guard length <= UInt64(left), let run = take(Int(length)) else { throw .short }
    return run
  }

  private func count(_ items: UInt64, bytesEach: Int) throws(CBORFault) -> Int {
    guard items <= UInt64(left / bytesEach) else { throw .short }
    return Int(items)
  }

  private mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
    guard count <= left else { return nil }
    defer { at += count }
    return bytes[at..<at + count]
  }
}

extension CBORValue {
  /// A member of a map.
  subscript(key: CBORKey) -> CBORValue? { if case .map(let members) = self { members[key] } else { nil } }

  var integer: Int64? { if case .integer(let number) = self { number } else { nil } }
  var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }
  var text: String? { if case .text(let text) = self { text } else { nil } }
}
