import Foundation
import MoongateCore

/// JSON of records. Encoding and decoding run in the caller's task, not where others wait for the database.
enum JSON {
  static func encode(_ value: some Encodable) throws -> Data { try JSONEncoder().encode(value) }

  static func decode<Value: Decodable>(_ type: Value.Type, _ data: Data) throws -> Value { try JSONDecoder().decode(type, from: data) }
}
