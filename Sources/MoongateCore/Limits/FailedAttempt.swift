import Foundation
import MoongateSDK

/// A stored failed attempt at something that can be locked. It shows an operator who examines a lock which user it
/// concerns.
///
/// Attack: a copy of the database. The counter and both hashes are keyed, and their plaintext is sealed under a key
/// that is not in the database. The rows show that someone failed, and when. They do not show who, or from which
/// address.
package struct FailedAttempt: Sendable, Equatable {
  /// The counter that counted the attempt (`ResolvedLimit.counter`).
  package let counter: [UInt8]
  package let at: Timestamp
  /// `KeyRing.accountTrace` of the account that the attempt was about; nil if unknown.
  package let account: String?
  /// `KeyRing.logHash` of the entered identifier; nil if none was entered.
  package let identifier: String?
  /// An `AttemptOrigin`, sealed for the counter.
  package let sealed: [UInt8]

  /// How many of the newest attempts are stored per counter.
  package static let most = 20
  /// How long attempts are stored without a lock.
  package static let retention: Duration = .seconds(7 * 86_400)

  package init(counter: [UInt8], at: Timestamp, account: String?, identifier: String?, sealed: [UInt8]) {
    self.counter = counter
    self.at = at
    self.account = account
    self.identifier = identifier
    self.sealed = sealed
  }
}

/// The user that a failed attempt concerned, and its source.
package struct AttemptOrigin: Sendable, Equatable, Codable {
  package let identifier: Identifier?
  /// The account's ID.
  package let account: String?
  /// The client's address.
  package let address: String

  package init(identifier: Identifier?, account: String?, address: String) {
    self.identifier = identifier
    self.account = account
    self.address = address
  }

  /// Seals the origin with the current key.
  func attempt(at counter: [UInt8], _ moment: Timestamp, by keys: KeyRing) throws -> FailedAttempt {
    var plain = Array(try JSONEncoder().encode(self))
    // Attack: the length of the sealed data distinguishes a short address from a long one. It is therefore padded.
    plain += [UInt8](repeating: UInt8(ascii: " "), count: (Self.block - plain.count % Self.block) % Self.block)
    return FailedAttempt(
      counter: counter, at: moment, account: account.map(keys.accountTrace),
      identifier: identifier.map { keys.logHash($0.value) },
      sealed: try keys.seal(plain, for: Self.owner(counter)))
  }

  /// Opens what `attempt` sealed.
  /// - Throws: if it was changed, moved to another counter, or sealed under a key that is not in the ring.
  package init(opening attempt: FailedAttempt, by keys: KeyRing) throws {
    self = try JSONDecoder().decode(
      Self.self, from: Data(try keys.open(attempt.sealed, for: Self.owner(attempt.counter))))
  }

  private static let block = 128

  /// Attack: someone with write access to the database moves the name of one lock to another, so that the operator
  /// lifts the wrong one.
  private static func owner(_ counter: [UInt8]) -> String { "failed attempt \(Base64URL.encode(counter))" }
}

extension KeyRing {
  /// The keyed hash by which failed attempts refer to an account.
  package func accountTrace(_ id: String) -> String { logHash("account \(id)") }
}

extension ResolvedLimit {
  /// Whether its locks concern one person or one client, whom an operator wants to identify.
  var remembersFailures: Bool { (disables || !lock.isEmpty) && (key.isPersonal || key == .ip || key == .device) }
}
