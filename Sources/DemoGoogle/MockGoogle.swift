import Crypto
import Foundation
import MoongateSDK

/// An OpenID provider for demos and tests. It signs in any user without a password.
///
/// It implements OpenID Connect Core 1.0 with the authorization code flow as strictly as a production provider: exact
/// redirect URIs, PKCE (RFC 7636, S256 only), one-time codes with a lifetime of a minute, and client authentication. It
/// is independent of the gateway.
package actor MockGoogle {
  /// A registered client.
  package struct Client: Sendable {
    package let id: String
    package let secret: String
    /// The redirect URIs, compared byte for byte (RFC 9700 section 2.1).
    package let redirects: Set<String>

    package init(id: String, secret: String, redirects: Set<String>) {
      self.id = id
      self.secret = secret
      self.redirects = redirects
    }
  }

  /// The lifetime of a code: 60 s (RFC 6749 section 4.1.2 recommends at most ten minutes).
  static let codeLifetime: Int64 = 60_000
  /// The lifetime of access and ID tokens: one hour.
  static let tokenLifetime: Int64 = 3_600_000
  /// The lifetime of an account selection page.
  static let choiceLifetime: Int64 = 600_000
  /// The delay of the token endpoint if the user has chosen it: longer than a client should wait.
  static let slowness: Duration = .seconds(8)
  /// The maximum number of stored items of each kind; the oldest are removed first.
  static let most = 10_000

  /// Scheme, host, port and optional path, without a trailing slash.
  nonisolated package let issuer: String
  let clients: @Sendable () -> [Client]
  let now: @Sendable () -> Int64
  let random: @Sendable (Int) -> [UInt8]
  let sleep: @Sendable (Duration) async -> Void

  var keys: SigningKeys?
  var choices = Remembered<Choice>(most: most)
  var grants = Remembered<Grant>(most: most)
  var accessTokens = Remembered<AccessToken>(most: most)
  /// Accounts from the form, by subject.
  var typed = Remembered<MockAccount>(most: most)
  /// Subjects that have signed in before.
  var seen: Set<String> = []

  /// - Parameters:
  ///   - issuer: the URL of the provider.
  ///   - clients: called for each request, so that changes of settings apply at once.
  ///   - now: milliseconds since the Unix epoch.
  ///   - random: bytes from the system's random generator.
  ///   - sleep: waits; replaced in tests.
  package init(
    issuer: String, clients: @escaping @Sendable () -> [Client],
    now: @escaping @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970 * 1000) },
    random: @escaping @Sendable (Int) -> [UInt8],
    sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
  ) {
    self.issuer = issuer
    self.clients = clients
    self.now = now
    self.random = random
    self.sleep = sleep
  }

  /// A random token of 256 bits.
  func token() -> String { Base64URL.encode(random(32)) }

  func client(_ id: String?) -> Client? { clients().first { $0.id == id } }

  /// The signing keys. The first pair is created on demand, because this takes a while.
  func signingKeys() throws -> SigningKeys {
    if let keys { return keys }
    let made = try SigningKeys(id: String(token().prefix(12)))
    keys = made
    return made
  }

  /// Signs with new keys from now on. The previous keys stay published; older ones do not.
  package func rotateKeys() throws { keys = try signingKeys().rotated(id: String(token().prefix(12))) }

  /// The discovery document (OpenID Connect Discovery 1.0 section 3).
  func discovery() -> Discovery { Discovery(issuer: issuer) }

  /// The account with the subject, from the list or from the form.
  func account(_ subject: String) -> MockAccount? {
    MockAccount.listed.first { $0.subject == subject } ?? typed[subject]
  }
}

/// A bounded map that removes the oldest entries first.
struct Remembered<Value: Sendable>: Sendable {
  private let most: Int
  private var values: [String: Value] = [:]
  private var order: [String] = []

  init(most: Int) { self.most = most }

  subscript(key: String) -> Value? { values[key] }

  mutating func put(_ value: Value, for key: String) {
    if values.updateValue(value, forKey: key) == nil { order.append(key) }
    if order.count > most {
      for old in order.prefix(order.count - most) { values[old] = nil }
      order.removeFirst(order.count - most)
    }
  }

  mutating func remove(_ key: String) {
    guard values.removeValue(forKey: key) != nil else { return }
    order.removeAll { $0 == key }
  }
}
