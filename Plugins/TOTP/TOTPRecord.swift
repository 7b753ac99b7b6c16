import Foundation

/// What is kept of an authenticator app. The core seals it.
struct TOTPRecord: Codable, Equatable {
  let key: [UInt8]
  /// The period whose code was accepted last. Its code is spent.
  var step: Int64
  var recovery: RecoveryCodes

  init(key: [UInt8], step: Int64, recovery: RecoveryCodes) {
    self.key = key
    self.step = step
    self.recovery = recovery
  }

  /// - Throws: where it is none.
  init(bytes: [UInt8]) throws { self = try JSONDecoder().decode(Self.self, from: Data(bytes)) }

  /// - Throws: never, as far as can be told of an encoder.
  var bytes: [UInt8] { get throws { Array(try JSONEncoder().encode(self)) } }
}

/// What the provider wants back while a step waits. The core seals it too.
struct TOTPState: Codable {
  /// Shown to the person, and not proved yet.
  var key: [UInt8]?
  /// What will be kept, once the person has seen the recovery codes.
  var kept: TOTPRecord?

  init(key: [UInt8]? = nil, kept: TOTPRecord? = nil) {
    self.key = key
    self.kept = kept
  }

  /// - Throws: where it is none.
  init(bytes: [UInt8]) throws { self = bytes.isEmpty ? TOTPState() : try JSONDecoder().decode(Self.self, from: Data(bytes)) }

  var bytes: [UInt8] { get throws { Array(try JSONEncoder().encode(self)) } }
}
