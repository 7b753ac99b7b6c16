import Foundation

/// What is stored of an authenticator app. The gateway seals it.
struct TOTPRecord: Codable, Equatable {
  /// The secret that the app and the gateway share (RFC 4226 section 4, R6).
  let key: [UInt8]
  /// The period whose code was accepted last. That code and older ones are used up (RFC 6238 section 5.2).
  var step: Int64
  var recovery: RecoveryCodes

  /// Of an account that does not exist: a key that nobody has, and a period after which no code is fresh.
  static let ofNobody = TOTPRecord(key: [UInt8](repeating: 0, count: TimeCode.keySize), step: .max, recovery: .none)

  init(key: [UInt8], step: Int64, recovery: RecoveryCodes) {
    self.key = key
    self.step = step
    self.recovery = recovery
  }

  /// - Throws: if the bytes are not a record.
  init(bytes: [UInt8]) throws { self = try JSONDecoder().decode(Self.self, from: Data(bytes)) }

  /// As it is stored.
  var bytes: [UInt8] { get throws { Array(try JSONEncoder().encode(self)) } }
}

/// What a step keeps from one round to the next. The gateway seals it.
struct TOTPState: Codable {
  /// The key that was shown to the person and that no code has proved yet.
  var key: [UInt8]?
  /// What will be stored once the person has seen the recovery codes.
  var pendingRecord: TOTPRecord?

  private enum CodingKeys: String, CodingKey {
    case key
    // Steps that are open while a gateway is updated.
    case pendingRecord = "kept"
  }

  init(key: [UInt8]? = nil, pendingRecord: TOTPRecord? = nil) {
    self.key = key
    self.pendingRecord = pendingRecord
  }

  /// - Parameter bytes: empty for a step that keeps nothing.
  /// - Throws: if the bytes are not a state.
  init(bytes: [UInt8]) throws {
    self = bytes.isEmpty ? TOTPState() : try JSONDecoder().decode(Self.self, from: Data(bytes))
  }

  /// As the gateway seals it.
  var bytes: [UInt8] { get throws { Array(try JSONEncoder().encode(self)) } }
}
