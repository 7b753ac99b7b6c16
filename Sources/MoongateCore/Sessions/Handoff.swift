import MoongateSDK

/// The content of a handoff code: permission to transfer one sign-in to one origin, in one browser, once, for a short
/// time.
///
/// The code is this content, sealed under the installation's keys. Any gateway of the installation can redeem a code
/// that another one issued, and a client can neither read nor create one.
struct Handoff: Sendable, Equatable {
  /// How long a code is valid.
  static let lifetime: Duration = .seconds(30)
  private static let version: UInt8 = 1

  /// 128 random bits, by which the code is marked as used.
  let id: [UInt8]
  /// The token of the sign-in at `public_url`.
  let home: TokenHash
  /// The hash of the nonce in the browser that asked.
  let challenge: TokenHash
  let expiresAt: Timestamp
  /// The origin that the code is valid for.
  let origin: String
  /// The path and query to redirect to at that origin.
  let target: String

  /// The hash under which the code is marked as used.
  var spent: TokenHash { TokenHash(of: id) }

  fileprivate var bytes: [UInt8] {
    let time = (0..<8).map { UInt8(truncatingIfNeeded: expiresAt.milliseconds >> (56 - 8 * Int64($0))) }
    let origin = Array(origin.utf8)
    return [Self.version] + id + home.bytes + challenge.bytes + time + [UInt8(truncatingIfNeeded: origin.count)]
      + origin + Array(target.utf8)
  }

  /// More than five parameters: one for each field.
  init(id: [UInt8], home: TokenHash, challenge: TokenHash, expiresAt: Timestamp, origin: String, target: String) {
    self.id = id
    self.home = home
    self.challenge = challenge
    self.expiresAt = expiresAt
    self.origin = origin
    self.target = target
  }

  /// - Returns: nil if the bytes are not a valid handoff.
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
  /// The maximum length of a code, in bytes: base64 of the longest target with 1,024 bytes for everything else.
  private static let longestHandoff = (HandoffService.longestTarget + 1_024) / 3 * 4

  fileprivate func code(_ handoff: Handoff) throws -> SecretText {
    SecretText(Base64URL.encode(try seal(handoff.bytes, for: Self.handoffOwner)))
  }

  /// - Returns: nil if the text is forged, damaged, or from another installation.
  fileprivate func handoff(_ code: String) -> Handoff? {
    guard code.utf8.count <= Self.longestHandoff, let sealed = Base64URL.decode(code),
      let bytes = try? open(sealed, for: Self.handoffOwner)
    else { return nil }
    return Handoff(bytes: bytes)
  }
}

/// Why a code was not redeemed, for the operator. Users see the same text for all reasons.
package enum HandoffRefusal: String, Error, Sendable {
  /// Not a code of this installation, or damaged.
  case malformed = "the code is not from this installation"
  case expired = "the code is too old"
  case spent = "the code was used before"
  case otherOrigin = "the code is for another origin"
  /// The browser has no handoff cookie, or a different one.
  case otherBrowser = "the code was requested by another browser"
  case ended = "the sign-in has ended, or has a new token"
}

/// Transfers a sign-in to another root domain.
///
/// A browser without a cookie for that domain gets a nonce there and is redirected to `public_url`, where it has one.
/// `issue` creates a code there; `redeem` exchanges the code for a separate token for the domain.
package struct HandoffService: Sendable {
  /// The maximum length of a return address (`RedirectTargets`), in bytes. Every one fits in a code, and a code in the
  /// 32 KiB of a request's head.
  package static let longestTarget = 16_384

  let keys: KeyRing
  let store: any Store
  let clock: any GatewayClock
  let random: any RandomSource

  /// Issues a code that transfers the session to another origin.
  /// - Parameters:
  ///   - session: the sign-in, found by its own token.
  ///   - origin: the origin of a host in another root domain, already validated.
  ///   - target: the path and query there, already validated.
  ///   - challenge: the SHA-256 of the browser's nonce.
  /// - Returns: nil if the session's token is itself for another domain. Such a token cannot issue codes.
  package func issue(for session: Session, to origin: String, target: String, challenge: TokenHash) throws
    -> SecretText?
  {
    guard session.domain == nil, origin.utf8.count <= 255 else { return nil }
    return try keys.code(
      Handoff(
        id: random.bytes(16), home: session.token, challenge: challenge, expiresAt: clock.now() + Handoff.lifetime,
        origin: origin, target: target))
  }

  /// The result of redeeming a code.
  package struct Redeemed: Sendable {
    package let token: SessionToken
    /// The path and query to redirect to.
    package let target: String
    /// How long the browser keeps the cookie; nil: until it is closed.
    package let cookieLifetime: Duration?
  }

  /// The client that redeems a code.
  package struct Redeemer: Sendable {
    let origin: String
    let domain: String
    let nonce: TokenHash?
    let address: ClientAddress
    let decision: DecisionID
    let old: Session?

    /// More than five parameters: one for each field.
    /// - Parameters:
    ///   - origin: the origin of the request.
    ///   - domain: the root domain of that origin.
    ///   - nonce: the hash of the browser's nonce; nil if it has none.
    ///   - old: the live session that the browser already has there.
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

  /// Redeems a code. Every attempt marks the code as used, so that a code that was intercepted becomes worthless, in
  /// any order of the requests.
  ///
  /// Attacks: a code replayed (marked as used); in another browser, be it a stolen code or an attacker's own (the
  /// nonce); at another origin; after a sign-out; later than 30 s.
  package func redeem(_ code: String, by redeemer: Redeemer) async throws(StoreFault) -> Result<
    Redeemed, HandoffRefusal
  > {
    guard let handoff = keys.handoff(code) else { return .failure(.malformed) }
    let now = clock.now()
    guard now < handoff.expiresAt else { return .failure(.expired) }
    // Remembered longer than the code is valid, because another gateway's clock may be behind.
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
    // The browser had another session there. It ends, because its cookie is replaced.
    if let old = redeemer.old, old.id != found.session.id { changes.append(.endSession(old.token)) }
    changes.append(
      .audit(
        AuditEvent(
          id: redeemer.decision, at: now, kind: .sessionExtended, account: found.session.account,
          address: redeemer.address.description,
          detail: [
            "session": found.session.id, "domain": redeemer.domain, "session_hash": token.hash.trace,
            "expires_at": found.session.expiresAt.text,
          ])))
    switch try await store.apply(changes, at: now) {
    case .applied:
      return .success(
        Redeemed(token: token, target: handoff.target, cookieLifetime: found.session.cookieLifetime(at: now)))
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
