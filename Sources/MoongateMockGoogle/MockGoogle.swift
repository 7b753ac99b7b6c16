import Crypto
import Foundation
import MoongateSDK

/// An OpenID provider for demos and tests: it asks nobody for a password, and whoever chooses an account is that
/// person.
///
/// It owns the provider's side of OpenID Connect Core 1.0 by authorization code, as strictly as a good real one: exact
/// redirect addresses, PKCE (RFC 7636, S256 only), codes that live for a minute and work once, clients that prove
/// themselves. It does not own sign-in, sessions or accounts of anybody else; it knows nothing of the gateway.
package actor MockGoogle {
  /// Somebody who may send people here.
  package struct Client: Sendable {
    package let id: String
    package let secret: String
    /// Addresses to send people back to, compared byte for byte (RFC 9700 section 2.1).
    package let redirects: Set<String>

    package init(id: String, secret: String, redirects: Set<String>) {
      self.id = id
      self.secret = secret
      self.redirects = redirects
    }
  }

  /// A code lives for 60 s (RFC 6749 section 4.1.2 asks for at most ten minutes).
  static let codeLifetime: Int64 = 60_000
  /// An access token and an ID token live for an hour.
  static let tokenLifetime: Int64 = 3_600_000
  /// How long somebody may look at the page of accounts.
  static let choiceLifetime: Int64 = 600_000
  /// How long the token endpoint takes for someone who asked for it: longer than a client should wait.
  static let slowness: Duration = .seconds(8)
  /// Of each thing that is remembered, at most so many; the oldest go first.
  static let most = 10_000

  /// Scheme, host, port and perhaps a path, without a slash at its end.
  nonisolated package let issuer: String
  let clients: @Sendable () -> [Client]
  let now: @Sendable () -> Int64
  let random: @Sendable (Int) -> [UInt8]
  let sleep: @Sendable (Duration) async -> Void

  var keys: SigningKeys?
  var choices = Remembered<Choice>(most: most)
  var grants = Remembered<Grant>(most: most)
  var accessTokens = Remembered<AccessToken>(most: most)
  /// Accounts of people who were not in the list, by subject.
  var typed = Remembered<MockAccount>(most: most)
  /// Subjects that have signed in here before.
  var seen: Set<String> = []

  /// - Parameters:
  ///   - issuer: where it is reached.
  ///   - clients: asked at each request, so that a change of the gateway's settings holds at once.
  ///   - now: milliseconds since the Unix epoch.
  ///   - random: bytes from the system's generator.
  ///   - sleep: waits; tests do not.
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

  /// 256 bits that nobody guesses.
  func token() -> String { Base64URL.encode(random(32)) }

  func client(_ id: String?) -> Client? { clients().first { $0.id == id } }

  /// Makes the first pair of keys when they are needed: that takes a while.
  func signingKeys() throws -> SigningKeys {
    if let keys { return keys }
    let made = try SigningKeys(id: String(token().prefix(12)))
    keys = made
    return made
  }

  /// Signs with new keys from now on. Those before stay published, those before them do not.
  package func rotateKeys() throws { keys = try signingKeys().rotated(id: String(token().prefix(12))) }

  /// The discovery document (OpenID Connect Discovery 1.0 section 3).
  func discovery() -> Discovery { Discovery(issuer: issuer) }

  /// Somebody by a name of the list, or who typed their own.
  func account(_ subject: String) -> MockAccount? {
    MockAccount.listed.first { $0.subject == subject } ?? typed[subject]
  }
}

/// What is kept by a key for a while, the oldest dropped first.
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
