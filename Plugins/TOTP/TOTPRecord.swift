import Foundation

/// The record of an authenticator app. The gateway encrypts it.
struct TOTPRecord: Codable, Equatable {
  /// The shared secret (RFC 4226 section 4, R6).
  let key: [UInt8]
  /// The period of the last accepted code. This code and older ones are used (RFC 6238 section 5.2).
  var step: Int64
  var recovery: RecoveryCodes

  /// The placeholder for an unknown account: a key that no app has, and a period after which no code is valid.
  static let ofNobody = TOTPRecord(key: [UInt8](repeating: 0, count: TimeCode.keySize), step: .max, recovery: .none)

  init(key: [UInt8], step: Int64, recovery: RecoveryCodes) {
    self.key = key
    self.step = step
    self.recovery = recovery
  }

  /// - Throws: an error if the bytes are not a record.
  init(bytes: [UInt8]) throws { self = try JSONDecoder().decode(Self.self, from: Data(bytes)) }

  /// The stored form.
  var bytes: [UInt8] { get throws { Array(try JSONEncoder().encode(self)) } }
}

/// The state of a step between rounds. The gateway encrypts it.
struct TOTPState: Codable {
  /// The new key, which no code has verified yet.
  var key: [UInt8]?
  /// The record to store once the user has seen the recovery codes.
  var pendingRecord: TOTPRecord?

  init(key: [UInt8]? = nil, pendingRecord: TOTPRecord? = nil) {
    self.key = key
    self.pendingRecord = pendingRecord
  }

  /// - Parameter bytes: empty for a step without state.
  /// - Throws: an error if the bytes are not a state.
  init(bytes: [UInt8]) throws {
    self = bytes.isEmpty ? TOTPState() : try JSONDecoder().decode(Self.self, from: Data(bytes))
  }

  /// The encoded form.
  var bytes: [UInt8] { get throws { Array(try JSONEncoder().encode(self)) } }
}
