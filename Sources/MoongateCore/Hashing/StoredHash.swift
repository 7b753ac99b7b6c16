import CArgon2
import Foundation
import MoongateSDK

/// A stored or imported hash of a PIN or password: Argon2 in PHC format, bcrypt, or a format of another program.
package enum StoredHash: Sendable, Equatable {
  case argon2(Argon2Hash)
  /// `$2a$`, `$2b$` or `$2y$`, 60 characters.
  case bcrypt(String)
  /// A format that the gateway never writes.
  case foreign(ForeignHash)

  /// Why a text is not a usable hash.
  package enum Problem: String, Error, Sendable {
    case unknownKind = "it has none of the formats in the guide on users and locks, under \"Move in from elsewhere\""
    case illFormed = "it is not well formed"
    /// Attack: an imported hash whose cost keeps a thread busy for seconds or days (`HashWork.largest`).
    case tooExpensive =
      """
      it costs too much to check: Argon2 up to 256 MiB, 16 lanes, and 768 MiB for all passes together; bcrypt up to \
      2^13 rounds; PBKDF2 up to 1,572,864 iterations of SHA-1 or SHA-256 and 786,432 of SHA-512, for all blocks of the \
      digest together; scrypt up to N·r·p = 2^20, 256 MiB and r = 16; SHA-crypt up to 786,432 rounds
      """
    /// The digest is so short that another secret could match it.
    case tooWeak = "its salt or its digest is too short: 8 and 16 bytes at least, any salt in formats of other programs"
  }

  /// The kind of hash, as providers declare which kinds they accept.
  package var kind: SecretHashKind {
    switch self {
    case .argon2: .argon2
    case .bcrypt: .bcrypt
    case .foreign(let hash): hash.kind
    }
  }

  /// Whether an operator must ask for it by name: somebody who has the hash finds the password of most users.
  package var isWeak: Bool { if case .foreign(let hash) = self { hash.isWeak } else { false } }

  /// The work of comparing a secret with it.
  package var work: HashWork {
    switch self {
    case .argon2(let hash): hash.work
    // The form was validated: the number follows the second dollar sign.
    case .bcrypt(let text): .bcrypt(rounds: Int(text.dropFirst(4).prefix(2)) ?? 0)
    case .foreign(let hash): .foreign(hash.work)
    }
  }

  /// Whether another program made it: it has no pepper of a gateway.
  package var isForeign: Bool {
    switch self {
    case .argon2(let hash): hash.pepper == nil
    case .bcrypt, .foreign: true
    }
  }

  /// - Parameter text: untrusted text.
  package init(_ text: String) throws(Problem) {
    // Longer than anything that the bounds below allow, so reject it without parsing.
    guard text.utf8.count <= 512, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else { throw .illFormed }
    // LDAP servers write the name of the scheme before hashes that have a format of their own.
    let text = text.replacing(/^\{(?:CRYPT|ARGON2)\}/.ignoresCase(), with: "")
    if text.hasPrefix("$argon2") {
      self = .argon2(try Argon2Hash(text))
    } else if ["$2a$", "$2b$", "$2y$"].contains(where: text.hasPrefix) {
      self = .bcrypt(try Self.bcrypt(text))
    } else {
      guard let hash = try ForeignFormat.read(text) else { throw .unknownKind }
      self = .foreign(hash)
    }
  }

  private static func bcrypt(_ text: String) throws(Problem) -> String {
    let parts = text.split(separator: "$", omittingEmptySubsequences: false)
    let alphabet = Set("./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    guard parts.count == 4, parts[2].count == 2, let rounds = Int(parts[2]), rounds >= 4, parts[3].count == 53,
      parts[3].allSatisfy(alphabet.contains)
    else { throw .illFormed }
    guard rounds <= 13 else { throw .tooExpensive }
    return text
  }
}

/// `$argon2id$v=19$m=19456,t=2,p=1,keyid=…$salt$digest`: Argon2 in the PHC string format. `keyid` names our pepper; an
/// imported hash has none.
package struct Argon2Hash: Sendable, Equatable, CustomStringConvertible {
  /// The variant of Argon2 (RFC 9106 section 3.1).
  package enum Kind: String, Sendable {
    case argon2i, argon2id

    var type: argon2_type { self == .argon2i ? Argon2_i : Argon2_id }
  }

  package let kind: Kind
  /// 0x10 or 0x13.
  package let version: UInt32
  package let cost: HashCost
  /// The pepper with which the secret was keyed before hashing; nil: none.
  package let pepper: String?
  package let salt: [UInt8]
  package let digest: [UInt8]

  /// More than five parameters: the secret, and the members of the hash.
  /// Computes a hash, with the time and memory that `cost` sets.
  /// - Parameter input: the secret, already peppered if `pepper` is set.
  package init(
    _ input: [UInt8], kind: Kind = .argon2id, version: UInt32 = 0x13, cost: HashCost, pepper: String?, salt: [UInt8],
    length: Int = 32
  ) throws(HashingFault) {
    self.kind = kind
    self.version = version
    self.cost = cost
    self.pepper = pepper
    self.salt = salt
    var digest = [UInt8](repeating: 0, count: length)
    let code = argon2_hash(
      cost.passes, cost.memory, cost.lanes, input, input.count, salt, salt.count, &digest, length, nil, 0, kind.type,
      version)
    if code == ARGON2_MEMORY_ALLOCATION_ERROR.rawValue || code == ARGON2_THREAD_FAIL.rawValue { throw .outOfMemory }
    guard code == ARGON2_OK.rawValue else { throw .unreadable(.illFormed) }
    self.digest = digest
  }

  /// Parses a PHC string.
  package init(_ text: String) throws(StoredHash.Problem) {
    var parts = text.split(separator: "$", omittingEmptySubsequences: false).dropFirst()
    guard let name = parts.popFirst(), let kind = Kind(rawValue: String(name)) else { throw .unknownKind }
    self.kind = kind
    if parts.count == 4 {
      // A missing version means 0x10, the version before the field existed.
      guard let written = parts.popFirst(), written == "v=19" || written == "v=16" else { throw .illFormed }
      version = written == "v=19" ? 0x13 : 0x10
    } else {
      version = 0x10
    }
    guard parts.count == 3, let parameters = parts.popFirst(), let salt = parts.popFirst().flatMap(Self.bytes),
      let digest = parts.popFirst().flatMap(Self.bytes)
    else { throw .illFormed }
    var fields = parameters.split(separator: ",", omittingEmptySubsequences: false)[...]
    guard let memory = Self.number(fields.popFirst(), "m="), let passes = Self.number(fields.popFirst(), "t="),
      let lanes = Self.number(fields.popFirst(), "p="), fields.count <= 1
    else { throw .illFormed }
    if let last = fields.popFirst() {
      guard last.hasPrefix("keyid=") else { throw .illFormed }
      pepper = String(last.dropFirst(6))
    } else {
      pepper = nil
    }
    guard memory <= 262_144, lanes <= 16, passes <= 1_000_000, Int(memory) * Int(passes) <= HashWork.largest else {
      throw .tooExpensive
    }
    guard passes >= 1, lanes >= 1, memory >= 8 * lanes, salt.count <= 64, digest.count <= 64 else { throw .illFormed }
    guard salt.count >= 8, digest.count >= 16 else { throw .tooWeak }
    cost = HashCost(memory: memory, passes: passes, lanes: lanes)
    self.salt = salt
    self.digest = digest
  }

  package var description: String {
    let key = pepper.map { ",keyid=\($0)" } ?? ""
    return
      "$\(kind.rawValue)$v=\(version)$m=\(cost.memory),t=\(cost.passes),p=\(cost.lanes)\(key)$\(Self.text(salt))$\(Self.text(digest))"
  }

  /// Whether it is as strong as a hash made with today's settings.
  func isCurrent(_ today: HashCost, pepper: String) -> Bool {
    kind == .argon2id && version == 0x13 && self.pepper == pepper && cost.memory >= today.memory
      && cost.passes >= today.passes
      && cost.lanes >= today.lanes
  }

  /// Base64 with `+` and `/`, without padding, as in the PHC format.
  static func text(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString().replacing("=", with: "") }

  private static func bytes(_ text: Substring) -> [UInt8]? {
    let padded = text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
    guard !text.contains("="), let data = Data(base64Encoded: String(padded)), self.text(Array(data)) == text else {
      return nil
    }
    return Array(data)
  }

  private static func number(_ field: Substring?, _ name: String) -> UInt32? {
    guard let field, field.hasPrefix(name) else { return nil }
    let digits = field.dropFirst(name.count)
    // No leading zeros, so that each number has one spelling.
    guard digits.utf8.allSatisfy({ (48...57).contains($0) }), digits.first != "0" || digits == "0" else { return nil }
    return UInt32(digits)
  }
}
