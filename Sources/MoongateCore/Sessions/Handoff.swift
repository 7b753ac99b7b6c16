import MoongateSDK

/// What a handoff's code says: that one sign-in may be taken over to one origin, in one browser, once, for a short
/// time.
///
/// The code is this, sealed under the installation's keys, so that any gateway of the installation can redeem what
/// another has issued and a client can neither read nor make one.
struct Handoff: Sendable, Equatable {
  /// How long a code is good.
  static let lifetime: Duration = .seconds(30)
  private static let version: UInt8 = 1

  /// 128 random bits: by them it is spent.
  let id: [UInt8]
  /// The sign-in, by its own token.
  let home: TokenHash
  /// The hash of the nonce that the browser has which asked.
  let challenge: TokenHash
  let expiresAt: Timestamp
  /// The origin that it is for.
  let origin: String
  /// Path and query there, where the person is led.
  let target: String

  /// As what it is spent.
  var spent: TokenHash { TokenHash(of: id) }

  fileprivate var bytes: [UInt8] {
    let time = (0..<8).map { UInt8(truncatingIfNeeded: expiresAt.milliseconds >> (56 - 8 * Int64($0))) }
    let origin = Array(origin.utf8)
    return [Self.version] + id + home.bytes + challenge.bytes + time + [UInt8(truncatingIfNeeded: origin.count)]
      + origin + Array(target.utf8)
  }

  init(id: [UInt8], home: TokenHash, challenge: TokenHash, expiresAt: Timestamp, origin: String, target: String) {
    self.id = id
    self.home = home
    self.challenge = challenge
    self.expiresAt = expiresAt
    self.origin = origin
    self.target = target
  }

  /// - Returns: nil where the bytes are none.
  fileprivate init?(bytes: [UInt8]) {
    let fixed = 1 + 16 + 32 + 32 + 8 + 1
    guard bytes.count >= fixed, bytes[0] == Self.version, bytes.count >= fixed + Int(bytes[fixed - 1]) else {
      return nil
    }
    let end = fixed + Int(bytes[fixed - 1])
    self.init(
      id: Array(bytes[1..<17]), home: TokenHash(bytes: Array(bytes[17..<49])),
      challenge: TokenHash(bytes: Array(bytes[49..<81])),
      expiresAt: Timestamp(milliseconds: bytes[81..<89].reduce(Int64(0)) { $0 << 8 | Int64($1) }),
      origin: String(decoding: bytes[fixed..<end], as: UTF8.self),
      target: String(decoding: bytes[end...], as: UTF8.self))
  }
}

extension KeyRing {
  private static let handoffOwner = "handoff"
  /// The longest text that is opened, in bytes: a target of 2,048 bytes fits.
  private static let longestHandoff = 4096

  fileprivate func code(_ handoff: Handoff) throws -> SecretText {
    SecretText(Base64URL.encode(try seal(handoff.bytes, for: Self.handoffOwner)))
  }

  /// - Returns: nil where the text is forged, damaged, or another installation's.
  fileprivate func handoff(_ code: String) -> Handoff? {
    guard code.utf8.count <= Self.longestHandoff, let sealed = Base64URL.decode(code),
      let bytes = try? open(sealed, for: Self.handoffOwner)
    else { return nil }
    return Handoff(bytes: bytes)
  }
}

/// Why a code is not redeemed, for the operator. The person reads the same of all of them.
package enum HandoffRefusal: String, Error, Sendable {
  /// It is none of ours: cut, changed, of another installation.
  case malformed = "the code is none of this installation"
  case expired = "the code is too old"
  case spent = "the code was used before"
  case otherOrigin = "the code is for another origin"
  /// Its browser has no cookie of the handoff, or another one.
  case otherBrowser = "the browser is not the one that asked for the code"
  case ended = "the sign-in has ended, or has a new token"
}

/// Takes a sign-in over to a further root domain.
///
/// A browser without a cookie of that domain gets a nonce there and is led to `public_url`, whose cookie it has;
/// `issue` gives it a code, `redeem` gives it a token of its own for the domain.
package struct HandoffService: Sendable {
  let keys: KeyRing
  let store: any Store
  let clock: any GatewayClock
  let random: any RandomSource

  /// A code that makes the session one of the origin's too.
  /// - Parameters:
  ///   - session: the sign-in, found by its own token.
  ///   - origin: of a host of a further root domain; judged already.
  ///   - target: path and query there; judged already.
  ///   - challenge: the SHA-256 of the browser's nonce.
  /// - Returns: nil where the session is itself one for a further domain: such a token makes no others.
  package func issue(for session: Session, to origin: String, target: String, challenge: TokenHash) throws
    -> SecretText?
  {
    guard session.domain == nil, origin.utf8.count <= 255 else { return nil }
    return try keys.code(
      Handoff(
        id: random.bytes(16), home: session.token, challenge: challenge, expiresAt: clock.now() + Handoff.lifetime,
        origin: origin, target: target))
  }

  /// What a redeemed code gives.
  package struct Redeemed: Sendable {
    package let token: SessionToken
    /// Path and query, where the person is led.
    package let target: String
  }

  /// Who redeems a code.
  package struct Redeemer: Sendable {
    let origin: String
    let domain: String
    let nonce: TokenHash?
    let address: ClientAddress
    let decision: DecisionID
    let old: Session?

    /// - Parameters:
    ///   - origin: where it came in.
    ///   - domain: the root domain of that.
    ///   - nonce: the hash of the browser's nonce; nil where it has none.
    ///   - old: the live session that the browser has there already.
    package init(
      origin: String, domain: String, nonce: TokenHash?, address: ClientAddress, decision: DecisionID, old: Session?
    ) {
      self.origin = origin
      self.domain = domain
      self.nonce = nonce
      self.address = address
      self.decision = decision
      self.old = old
    }
  }

  /// Spends a code. Whoever presents one spends it, so that a code which was seen elsewhere is worth nothing, in
  /// whatever order it comes.
  ///
  /// Attacks: a code replayed (spent); in another browser, be it a stolen code or an attacker's own (the nonce); at
  /// another origin; after a sign-out; later than 30 s.
  package func redeem(_ code: String, by redeemer: Redeemer) async throws(StoreFault) -> Result<
    Redeemed, HandoffRefusal
  > {
    guard let handoff = keys.handoff(code) else { return .failure(.malformed) }
    let now = clock.now()
    guard now < handoff.expiresAt else { return .failure(.expired) }
    // Longer than it is good, since another gateway's clock may be late.
    let spending = Change.spendCode(handoff.spent, until: handoff.expiresAt + .seconds(60))
    if let refusal = refusal(of: handoff, redeemer) {
      return .failure(try await store.apply([spending], at: now) == .conflict(.codeSpent) ? .spent : refusal)
    }
    guard let found = try await store.session(handoff.home), found.isLive(at: now), found.session.domain == nil else {
      _ = try await store.apply([spending], at: now)
      return .failure(.ended)
    }
    let token = SessionToken(from: random)
    var changes = [
      spending, .putDomainToken(NewDomainToken(domain: redeemer.domain, token: token.hash, session: found.session)),
    ]
    // Somebody else was signed in there in this browser; nobody is told of a sign-in of theirs that has no cookie any
    // more.
    if let old = redeemer.old, old.id != found.session.id { changes.append(.endSession(old.token)) }
    changes.append(
      .audit(
        AuditEvent(
          id: redeemer.decision, at: now, kind: .sessionExtended, account: found.session.account,
          address: redeemer.address.description,
          detail: ["session": found.session.id, "domain": redeemer.domain])))
    switch try await store.apply(changes, at: now) {
    case .applied: return .success(Redeemed(token: token, target: handoff.target))
    case .conflict(.codeSpent): return .failure(.spent)
    case .conflict: return .failure(.ended)
    }
  }

  private func refusal(of handoff: Handoff, _ redeemer: Redeemer) -> HandoffRefusal? {
    if handoff.origin != redeemer.origin { return .otherOrigin }
    guard let nonce = redeemer.nonce, constantTimeEquals(nonce.bytes, handoff.challenge.bytes) else {
      return .otherBrowser
    }
    return nil
  }
}
