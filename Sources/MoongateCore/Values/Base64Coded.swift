import MoongateSDK

/// Bytes that are encoded as base64url text. As a list of numbers they would take four times the space and forty times
/// the time.
@propertyWrapper package struct Base64Coded: Sendable, Equatable, Codable {
  package var wrappedValue: [UInt8]

  package init(wrappedValue: [UInt8]) { self.wrappedValue = wrappedValue }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let bytes = Base64URL.decode(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "bytes are written in base64url")
    }
    wrappedValue = bytes
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(Base64URL.encode(wrappedValue))
  }
}
