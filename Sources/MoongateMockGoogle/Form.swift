import MoongateSDK

/// The fields of a query or a form (`application/x-www-form-urlencoded`, WHATWG URL section 5).
struct Form: Sendable {
  private let values: [String: String]

  /// - Returns: nil if a field is repeated (RFC 6749 section 3.1) or the text cannot be decoded.
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

  /// nil if the field is missing or empty.
  subscript(name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

  static func decode(_ text: some Sequence<UInt8>) -> String? {
    var bytes: [UInt8] = []
    var rest = text.makeIterator()
    while let byte = rest.next() {
      switch byte {
      case UInt8(ascii: "+"): bytes.append(0x20)
      case UInt8(ascii: "%"):
        guard let high = rest.next().flatMap(digit), let low = rest.next().flatMap(digit) else { return nil }
        bytes.append(high << 4 | low)
      default: bytes.append(byte)
      }
    }
    return String(validating: bytes, as: UTF8.self)
  }

  /// Encodes the fields that have a value.
  static func encode(_ fields: [(String, String?)]) -> String {
    fields.compactMap { name, value in value.map { "\(name)=\(PercentEncoding.encode($0))" } }.joined(separator: "&")
  }

  private static func digit(_ byte: UInt8) -> UInt8? { Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) } }
}
