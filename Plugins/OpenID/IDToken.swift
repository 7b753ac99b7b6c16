import Foundation
import JWTKit
import MoongateSDK

/// A parsed but not yet verified ID token (OpenID Connect Core 1.0 section 2).
struct IDToken: Sendable {
  /// The maximum length in bytes of what a client brings.
  static let longest = 16 * 1024
  /// The maximum length in bytes from the token endpoint, with which 64 KiB of groups fit.
  static let longestIssued = 128 * 1024

  let text: String
  let algorithm: String
  let keyID: String?
  private let payload: [UInt8]

  /// - Parameters:
  ///   - algorithms: the accepted ones.
  ///   - longest: in bytes.
  /// - Throws: why the text cannot be a valid token.
  init(_ text: String, algorithms: [String], atMost longest: Int) throws(AnswerRefusal) {
    guard text.utf8.count <= longest else { throw AnswerRefusal(.token, "longer than \(longest) bytes") }
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let head = Base64URL.decode(String(parts[0])),
      let payload = Base64URL.decode(String(parts[1]))
    else { throw AnswerRefusal(.token) }
    let header = try JSONClaim.claims(head)
    guard let algorithm = header["alg"]?.text, algorithms.contains(algorithm) else {
      throw AnswerRefusal(.alg, header["alg"].map { $0.text ?? $0.shown } ?? "missing")
    }
    // A critical header parameter must be understood (RFC 7515 section 4.1.11), and none is supported.
    guard header["crit"] == nil else { throw AnswerRefusal(.crit, header["crit"]?.shown) }
    if let kid = header["kid"], kid.text == nil { throw AnswerRefusal(.kid, kid.shown) }
    guard let signature = Base64URL.decode(String(parts[2])), !signature.isEmpty else {
      throw AnswerRefusal(.signature)
    }
    self.text = text
    self.algorithm = algorithm
    self.payload = Array(payload)
    keyID = header["kid"]?.text
  }

  /// The claims.
  /// - Throws: if the key did not sign the token.
  func members(signedBy key: KeySet.Key) async throws(AnswerRefusal) -> [String: JSONClaim] {
    guard key.algorithms.contains(algorithm) else { throw AnswerRefusal(.alg, algorithm) }
    let keys = JWTKeyCollection()
    switch key.material {
    case .rsa(let material) where algorithm == "PS256": await keys.add(pss: material, digestAlgorithm: .sha256)
    case .rsa(let material): await keys.add(rsa: material, digestAlgorithm: .sha256)
    case .p256(let material): await keys.add(ecdsa: material)
    case .p384(let material): await keys.add(ecdsa: material)
    case .ed25519(let material): await keys.add(eddsa: material)
    }
    do { _ = try await keys.verify(text, as: AnyPayload.self) } catch { throw AnswerRefusal(.signature) }
    return try JSONClaim.claims(payload)
  }

  /// Any JSON object. The claims are read by `JSONClaim`.
  private struct AnyPayload: JWTPayload {
    private enum Keys: CodingKey {}

    init(from decoder: any Decoder) throws { _ = try decoder.container(keyedBy: Keys.self) }

    func encode(to encoder: any Encoder) throws { _ = encoder.container(keyedBy: Keys.self) }

    func verify(using algorithm: some JWTAlgorithm) {}
  }
}

extension JSONClaim {
  /// The members of a part of a token, or of an answer with claims.
  static func claims(_ bytes: some Sequence<UInt8>) throws(AnswerRefusal) -> [String: JSONClaim] {
    do throws(Problem) { return try members(bytes) } catch {
      switch error {
      case .malformed: throw AnswerRefusal(.token)
      // Of two members with one name, another program may take the other.
      case .duplicate(let name): throw AnswerRefusal(.duplicate, name)
      }
    }
  }
}

/// The claims of an ID token with a valid signature. `IDTokenExpectation` checks whether it is meant for this client.
struct IDTokenClaims: Sendable {
  let issuer: String
  let subject: String
  let audiences: [String]
  let authorizedParty: String?
  /// Seconds since the Unix epoch. Floating-point, so that a claim of 1e300 does not overflow.
  let expiresAt: Double
  let issuedAt: Double
  let notBefore: Double?
  let nonce: String?
  /// Seconds since the Unix epoch; nil if the issuer does not say when the user signed in there.
  let authenticatedAt: Double?
  /// All claims.
  let members: [String: JSONClaim]

  init(_ members: [String: JSONClaim]) throws(AnswerRefusal) {
    func wrong(_ reason: AnswerRefusal.Reason) -> AnswerRefusal {
      AnswerRefusal(reason, members[reason.rawValue]?.shown ?? "missing")
    }
    guard let issuer = members["iss"]?.text else { throw wrong(.iss) }
    // The subject is personal.
    guard let subject = members["sub"]?.text else { throw AnswerRefusal(.sub) }
    guard let audiences = members["aud"].flatMap({ $0.text.map { [$0] } ?? $0.texts }) else { throw wrong(.aud) }
    if let party = members["azp"], party.text == nil { throw wrong(.azp) }
    guard let expiresAt = members["exp"]?.number else { throw wrong(.exp) }
    guard let issuedAt = members["iat"]?.number else { throw wrong(.iat) }
    if let begin = members["nbf"], begin.number == nil { throw wrong(.nbf) }
    self.issuer = issuer
    self.subject = subject
    self.audiences = audiences
    authorizedParty = members["azp"]?.text
    self.expiresAt = expiresAt
    self.issuedAt = issuedAt
    notBefore = members["nbf"]?.number
    nonce = members["nonce"]?.text
    authenticatedAt = members["auth_time"]?.number
    self.members = members
  }
}

/// The validation of an ID token's claims (OpenID Connect Core 1.0 section 3.1.3.7).
struct IDTokenExpectation {
  let client: Client
  let metadata: IssuerMetadata
  /// nil for a token that a refresh has issued (section 12.2).
  let attempt: Attempt?
  /// Whether a token issued to one of the operator's apps is accepted, because the app submits it itself.
  let takesApps: Bool
  /// Milliseconds since the Unix epoch.
  let now: Int64

  /// The allowed clock difference, in seconds.
  private static let leeway: Double = 60

  /// - Throws: the first claim that is wrong.
  func check(_ claims: IDTokenClaims) throws(AnswerRefusal) {
    // 2.
    guard metadata.issued(claims.members) else { throw AnswerRefusal(.iss, claims.issuer) }
    try checkAudience(claims)
    try checkTimes(claims)
    // 11. Attack: a token of another step (replay, injection). The few issuers that send no nonce are known.
    if let attempt, claims.nonce != nil || client.preset.sendsNonce {
      guard let nonce = claims.nonce, constantTimeEquals(nonce, attempt.nonce) else { throw AnswerRefusal(.nonce) }
    }
    guard Self.isSubject(claims.subject) else { throw AnswerRefusal(.sub) }
  }

  /// At most 255 ASCII characters (section 2). Control characters have no use, and would be a risk in logs.
  static func isSubject(_ text: String) -> Bool {
    (1...255).contains(text.utf8.count) && text.utf8.allSatisfy { (0x20...0x7e).contains($0) }
  }

  /// 3. to 5.: the client must be an audience, and every other one trusted. `azp` is required with several audiences,
  /// and if it is there, it must be the client.
  private func checkAudience(_ claims: IDTokenClaims) throws(AnswerRefusal) {
    let parties = takesApps ? [client.id] + client.apps : [client.id]
    let shown = claims.audiences.joined(separator: ", ")
    // Attack: a token that another site obtained for this user.
    guard claims.audiences.contains(where: parties.contains),
      claims.audiences.allSatisfy({ parties.contains($0) || client.audiences.contains($0) })
    else { throw AnswerRefusal(.aud, shown) }
    guard let party = claims.authorizedParty else {
      if claims.audiences.count == 1 { return }
      throw AnswerRefusal(.azp, "missing")
    }
    guard parties.contains(party) else { throw AnswerRefusal(.azp, party) }
  }

  /// 9., 10. and 13.
  private func checkTimes(_ claims: IDTokenClaims) throws(AnswerRefusal) {
    let now = Double(now) / 1000
    // Attack: an issuer that ignores `max_age` answers for a browser that somebody else has used since.
    if attempt != nil, let maxAge = client.maxAge {
      guard let at = claims.authenticatedAt, at + maxAge + Self.leeway >= now else {
        throw AnswerRefusal(.authTime, claims.authenticatedAt.map { JSONClaim.number($0).shown } ?? "missing")
      }
    }
    guard now < claims.expiresAt + Self.leeway, claims.issuedAt < claims.expiresAt else {
      throw AnswerRefusal(.exp, JSONClaim.number(claims.expiresAt).shown)
    }
    // Attack: a token from before this step, which cannot be an answer to it.
    let earliest = attempt.map { Double($0.begunAt) / 1000 - Self.leeway } ?? 0
    guard claims.issuedAt <= now + Self.leeway, claims.issuedAt >= earliest else {
      throw AnswerRefusal(.iat, JSONClaim.number(claims.issuedAt).shown)
    }
    if let begin = claims.notBefore, begin > now + Self.leeway {
      throw AnswerRefusal(.nbf, JSONClaim.number(begin).shown)
    }
  }
}
