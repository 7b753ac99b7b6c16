import Crypto
import CryptoExtras
import Foundation
import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// A JWT with which an app authenticates itself (RFC 7523 section 3), not verified yet.
struct ClientAssertion: Sendable {
  private static let longest = 8192

  let algorithm: String
  let keyID: String?
  let signature: [UInt8]
  /// The text that is signed.
  let signed: [UInt8]
  let claims: [String: JSONClaim]
  /// The `client_id` that it names.
  let subject: String

  /// - Returns: nil if the text is not a JWT with a supported algorithm, or does not name an app.
  init?(_ text: String) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard text.utf8.count <= Self.longest, parts.count == 3, let head = Base64URL.decode(String(parts[0])),
      let body = Base64URL.decode(String(parts[1])), let signature = Base64URL.decode(String(parts[2])),
      let header = try? JSONClaim.members(head), let claims = try? JSONClaim.members(body)
    else { return nil }
    // Attack: `none`, or HMAC with the public key as its secret. Only these algorithms exist here.
    guard let algorithm = header["alg"]?.text, PublishedKey.algorithms.contains(algorithm) else { return nil }
    // Nothing that a header could declare as critical is supported (RFC 7515 section 4.1.11).
    guard header["crit"] == nil, header["kid"] == nil || header["kid"]?.text != nil else { return nil }
    guard let subject = claims["sub"]?.text, claims["iss"]?.text == subject else { return nil }
    self.algorithm = algorithm
    keyID = header["kid"]?.text
    self.signature = signature
    signed = Array("\(parts[0]).\(parts[1])".utf8)
    self.claims = claims
    self.subject = subject
  }
}

/// Verifies assertions of apps.
struct ClientAssertions: Sendable {
  let keySets: ClientKeySets
  let store: any Store
  let clock: any GatewayClock

  /// The longest time for which an assertion may be valid. Libraries make them for an hour. Its `jti` is remembered so
  /// long.
  private static let longestLife: Duration = .seconds(3600)
  /// The allowed clock difference.
  private static let leeway: Duration = .seconds(30)
  private static let longestID = 255

  /// Whether the app has signed the assertion, for this gateway, a short time ago, and uses it for the first time.
  func accept(_ assertion: ClientAssertion, of app: App, _ exchange: Exchange) async throws(AppFault) -> Bool {
    guard case .keys(let url) = app.authentication, assertion.subject == app.id else { return false }
    let now = clock.now()
    guard let expiry = expiry(of: assertion, exchange, at: now), let id = assertion.claims["jti"]?.text,
      (1...Self.longestID).contains(id.utf8.count),
      let key = await keySets.key(for: assertion, at: url), key.signed(assertion)
    else { return false }
    // Attack: an assertion that was read on its way is sent again. An app is part of what is marked, so that one app
    // cannot use up the ids of another.
    let spent = TokenHash(of: "client assertion \(app.id) \(id)".utf8)
    do throws(StoreFault) {
      let result = try await store.apply([.spendCode(spent, until: expiry + Self.leeway + .seconds(60))], at: now)
      if case .applied = result { return true }
      return false
    } catch {
      throw .store(error)
    }
  }

  /// When the assertion expires; nil if it is not valid now, or not for this gateway.
  private func expiry(of assertion: ClientAssertion, _ exchange: Exchange, at now: Timestamp) -> Timestamp? {
    let claims = assertion.claims
    guard let audiences = claims["aud"].flatMap({ $0.text.map { [$0] } ?? $0.texts }), !audiences.isEmpty else {
      return nil
    }
    // Attack: an app that was misled to another issuer signs an assertion for both. Every audience must be this one.
    let issuer = exchange.gateway.publicURL.description
    let called = String((exchange.request.head.path ?? "").prefix { $0 != "?" })
    let own = [issuer, issuer + "/", issuer + OpenIDPath.token, issuer + called]
    guard audiences.allSatisfy(own.contains) else { return nil }
    guard let seconds = Self.time(claims["exp"]) else { return nil }
    let expiry = Timestamp(milliseconds: seconds * 1000)
    guard now < expiry + Self.leeway, expiry <= now + Self.longestLife + Self.leeway else { return nil }
    for name in ["nbf", "iat"] where claims[name] != nil {
      guard let seconds = Self.time(claims[name]), Timestamp(milliseconds: seconds * 1000) <= now + Self.leeway else {
        return nil
      }
    }
    return expiry
  }

  /// A time in whole seconds; nil if it is none that the gateway can reach.
  private static func time(_ claim: JSONClaim?) -> Int64? {
    guard let number = claim?.number, (0...1e11).contains(number) else { return nil }
    return Int64(number)
  }
}
