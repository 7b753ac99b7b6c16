import Crypto
import MoongateCore
import MoongateSDK

/// The SHA-256 of a token as four words: what the cache is keyed by.
struct SessionKey: Hashable {
  private let words: (UInt64, UInt64, UInt64, UInt64)

  /// Hashes the token that lies in the range.
  init(hashing bytes: Span<UInt8>, _ range: Range<Int>) {
    var hash = SHA256()
    bytes.extracting(range).withUnsafeBufferPointer { hash.update(bufferPointer: UnsafeRawBufferPointer($0)) }
    words = hash.finalize().withUnsafeBytes { $0.loadUnaligned(as: (UInt64, UInt64, UInt64, UInt64).self) }
  }

  init(_ hash: TokenHash) {
    words = hash.bytes.withUnsafeBytes { bytes in
      bytes.count == 32 ? bytes.loadUnaligned(as: (UInt64, UInt64, UInt64, UInt64).self) : (0, 0, 0, 0)
    }
  }

  var tokenHash: TokenHash { TokenHash(bytes: withUnsafeBytes(of: words) { Array($0) }) }

  static func == (left: Self, right: Self) -> Bool { left.words == right.words }

  func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
  }
}

/// A session that an event loop remembers, with what it says to upstreams ready to be copied.
final class CachedSession {
  let key: SessionKey
  let snapshot: SessionSnapshot
  /// `Remote-User` and what else is known, as header lines.
  let identity: [UInt8]
  /// By this event loop's knowledge; another loop may know of a later moment.
  var lastSeenAt: Timestamp
  /// Until when uses need not be written down.
  var activityKnownUntil: Timestamp
  private var assertions: [(audience: String, minute: Int64, line: [UInt8])] = []

  init(key: SessionKey, snapshot: SessionSnapshot) {
    self.key = key
    self.snapshot = snapshot
    lastSeenAt = snapshot.session.lastSeenAt
    activityKnownUntil = Timestamp(milliseconds: .min)
    identity = Self.identityLines(snapshot.account)
  }

  /// Whether it lives, as far as this event loop knows.
  func isLive(at now: Timestamp) -> Bool {
    now < snapshot.session.expiresAt && now < max(lastSeenAt, snapshot.session.lastSeenAt) + snapshot.session.idle && !snapshot.account.isLocked
  }

  /// The line `X-Moongate-Assertion: …`, signed once per audience and minute.
  func assertionLine(by signer: AssertionSigner, issuer: String, audience: String, now: Timestamp) throws -> [UInt8] {
    let minute = now.seconds / 60
    if let known = assertions.first(where: { $0.minute == minute && $0.audience == audience }) { return known.line }
    let token = try signer.assertion(for: snapshot, issuer: issuer, audience: audience, now: now)
    let line = Array("X-Moongate-Assertion: \(token)\r\n".utf8)
    assertions.removeAll { $0.minute != minute }
    // Who sends many Hosts makes us sign more, not remember more.
    if assertions.count >= 4 { assertions.removeFirst() }
    assertions.append((audience, minute, line))
    return line
  }

  private static func identityLines(_ account: Account) -> [UInt8] {
    var lines: [UInt8] = []
    let add = { (name: String, value: String) in
      // Attack: a name with a line end in it would be a header of its own.
      let clean = value.unicodeScalars.filter { $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) }
      let text = String(String.UnicodeScalarView(clean))
      if !text.isEmpty { lines += Array("\(name): \(text)\r\n".utf8) }
    }
    add("Remote-User", account.id)
    if let email = account.identifier(.email), email.verifiedAt != nil { add("Remote-Email", email.identifier.value) }
    if let phone = account.identifier(.phone), phone.verifiedAt != nil { add("Remote-Phone", phone.identifier.value) }
    let name = [account.firstName, account.lastName].compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: " ")
    if !name.isEmpty { add("Remote-Name", name) }
    return lines
  }
}
