import MoongateCore
import MoongateSDK

/// The fields of a form or query (`application/x-www-form-urlencoded`, WHATWG URL, section 5.1), parsed strictly.
struct FormFields: Sendable, Equatable {
  private let values: [String: String]

  /// No fields.
  static let empty = FormFields(values: [:])

  private init(values: [String: String]) { self.values = values }

  /// - Returns: nil if the text is ambiguous or invalid: duplicate fields, `%` without two hexadecimal digits, invalid
  ///   UTF-8, or control characters.
  init?(_ text: some Collection<UInt8>) {
    var values: [String: String] = [:]
    for pair in text.split(separator: UInt8(ascii: "&")) {
      let equals = pair.firstIndex(of: UInt8(ascii: "="))
      guard let name = Self.decode(pair[..<(equals ?? pair.endIndex)]),
        let value = Self.decode(equals.map { pair[pair.index(after: $0)...] } ?? pair[pair.endIndex...]),
        values.updateValue(value, forKey: name) == nil
      else { return nil }
    }
    self.values = values
  }

  /// The value of a field; nil if it is absent or empty.
  subscript(name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

  /// Whether the field is there with an empty value.
  func isEmpty(_ name: String) -> Bool { values[name]?.isEmpty == true }

  /// The names of all fields, sorted.
  var names: [String] { values.keys.sorted() }

  private static func decode(_ text: some Sequence<UInt8>) -> String? {
    var bytes: [UInt8] = []
    var rest = text.makeIterator()
    while let byte = rest.next() {
      switch byte {
      case UInt8(ascii: "+"): bytes.append(0x20)
      case UInt8(ascii: "%"):
        guard let high = rest.next().flatMap(hex), let low = rest.next().flatMap(hex) else { return nil }
        bytes.append(high << 4 | low)
      default: bytes.append(byte)
      }
    }
    guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }

  private static func hex(_ byte: UInt8) -> UInt8? { Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) } }

  /// A URL with a query of the fields that have a value.
  static func address(_ path: String, _ fields: KeyValuePairs<String, String?>) -> String {
    let query = fields.compactMap { name, value in value.map { "\(name)=\(PercentEncoding.encode($0))" } }
    return query.isEmpty ? path : "\(path)?\(query.joined(separator: "&"))"
  }
}
