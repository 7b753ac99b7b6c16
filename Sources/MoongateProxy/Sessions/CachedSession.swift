import Crypto
import MoongateCore
import MoongateSDK
import NIOCore

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
  private var assertions: [Signed] = []

  /// What is signed for one audience in one minute.
  private struct Signed {
    let audience: String
    let minute: Int64
    let line: [UInt8]
    /// The whole answer to a proxy that asks; made when one does, by a generation of this version.
    var answer: (version: UInt64, bytes: ByteBuffer)?
  }

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
  func assertionLine(by keys: AssertionKeys, issuer: String, audience: String, now: Timestamp) throws -> [UInt8] {
    assertions[try signed(by: keys, issuer: issuer, audience: audience, now: now)].line
  }

  /// A yes to a proxy that asks, made once per audience and minute: a head that ends with its empty line.
  func forwardAnswer(by keys: AssertionKeys, _ plan: GenerationPlan, audience: String, now: Timestamp) throws -> ByteBuffer {
    let place = try signed(by: keys, issuer: plan.issuer, audience: audience, now: now)
    if let known = assertions[place].answer, known.version == plan.version { return known.bytes }
    let made = Self.forwardAnswer(snapshot.account, assertion: assertions[place].line, plan.securityLine)
    assertions[place].answer = (plan.version, made)
    return made
  }

  /// - Parameters:
  ///   - account: nil for nobody: the headers are there, and empty.
  ///   - more: lines that every answer has.
  static func forwardAnswer(_ account: Account?, assertion: [UInt8], _ more: [UInt8]) -> ByteBuffer {
    var out = ByteBuffer()
    out.writeStaticString("HTTP/1.1 200 OK\r\n")
    for (name, value) in account.map(identity) ?? ["Remote-User", "Remote-Email", "Remote-Phone", "Remote-Name"].map({ ($0, "") }) {
      out.writeString("\(name): \(value)\r\n")
    }
    out.writeBytes(assertion)
    out.writeBytes(more)
    // Without a length it would be chunked, and the proxies that ask would not use their connection again.
    out.writeStaticString("Cache-Control: no-store\r\nContent-Length: 0\r\n\r\n")
    return out
  }

  private func signed(by keys: AssertionKeys, issuer: String, audience: String, now: Timestamp) throws -> Int {
    let minute = now.seconds / 60
    if let known = assertions.firstIndex(where: { $0.minute == minute && $0.audience == audience }) { return known }
    let token = try keys.signer(at: now).assertion(for: snapshot, issuer: issuer, audience: audience, now: now)
    let line = Array("X-Moongate-Assertion: \(token)\r\n".utf8)
    assertions.removeAll { $0.minute != minute }
    // Who sends many Hosts makes us sign more, not remember more.
    if assertions.count >= 4 { assertions.removeFirst() }
    assertions.append(Signed(audience: audience, minute: minute, line: line))
    return assertions.count - 1
  }

  private static func identityLines(_ account: Account) -> [UInt8] {
    identity(account).flatMap { name, value in value.isEmpty ? [] : Array("\(name): \(value)\r\n".utf8) }
  }

  /// The headers that say who it is; empty where that is not known.
  private static func identity(_ account: Account) -> [(name: String, value: String)] {
    let verified = { (kind: IdentifierKind) in
      account.identifier(kind).flatMap { $0.verifiedAt == nil ? nil : $0.identifier.value } ?? ""
    }
    let name = [account.firstName, account.lastName].compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: " ")
    return [("Remote-User", account.id), ("Remote-Email", verified(.email)), ("Remote-Phone", verified(.phone)), ("Remote-Name", name)].map {
      // Attack: a name with a line end in it would be a header of its own.
      ($0.0, String(String.UnicodeScalarView($0.1.unicodeScalars.filter { $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) })))
    }
  }
}
