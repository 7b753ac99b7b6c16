import Foundation

/// JSON of records. Encoded and decoded in the caller's task, so that other tasks do not wait for it.
enum JSON {
  static func encode(_ value: some Encodable) throws -> [UInt8] { Array(try JSONEncoder().encode(value)) }

  static func decode<Value: Decodable>(_ type: Value.Type, _ json: some Sequence<UInt8>) throws -> Value {
    try JSONDecoder().decode(type, from: Data(json))
  }
}
