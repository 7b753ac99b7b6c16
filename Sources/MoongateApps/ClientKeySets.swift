import Crypto
import CryptoExtras
import Foundation
import MoongateCore
import MoongateSDK
import Synchronization

/// A public key that an app has published (RFC 7517).
struct PublishedKey: Sendable {
  private enum Material: Sendable {
    case rsa(_RSA.Signing.PublicKey)
    case p256(P256.Signing.PublicKey)
    case ed25519(Curve25519.Signing.PublicKey)
  }

  /// The algorithms of signatures that are accepted.
  static let algorithms = ["RS256", "PS256", "ES256", "EdDSA"]

  let id: String?
  /// The algorithms of the key: its own `alg`, or those of its type. They never depend on what is signed.
  let algorithms: [String]
  private let material: Material

  /// - Returns: nil for a key of another type or use, and for one that is too weak or too large.
  init?(_ fields: [String: JSONClaim]) {
    guard fields["use"] == nil || fields["use"]?.text == "sig" else { return nil }
    let bytes = { (name: String) in fields[name]?.text.flatMap(Base64URL.decode) }
    let fitting: [String]
    switch (fields["kty"]?.text, fields["crv"]?.text) {
    case ("RSA", nil):
      // Attack: with an exponent of 1, every message is its own signature; a huge modulus wastes processor time.
      guard let modulus = bytes("n"), bytes("e") == [1, 0, 1], (256...512).contains(modulus.count),
        modulus.first.map({ $0 >= 0x80 }) ?? false,
        let key = try? _RSA.Signing.PublicKey(n: Data(modulus), e: Data([1, 0, 1]))
      else { return nil }
      (material, fitting) = (.rsa(key), ["RS256", "PS256"])
    case ("EC", "P-256"):
      guard let x = bytes("x"), let y = bytes("y"), x.count == 32, y.count == 32,
        let key = try? P256.Signing.PublicKey(rawRepresentation: x + y)
      else { return nil }
      (material, fitting) = (.p256(key), ["ES256"])
    case ("OKP", "Ed25519"):
      guard let x = bytes("x"), let key = try? Curve25519.Signing.PublicKey(rawRepresentation: x) else { return nil }
      (material, fitting) = (.ed25519(key), ["EdDSA"])
    // Attack: with a symmetric key, whoever reads the set could sign. Such keys are ignored.
    default: return nil
    }
    if let named = fields["alg"] {
      guard let name = named.text, fitting.contains(name) else { return nil }
      algorithms = [name]
    } else {
      algorithms = fitting
    }
    id = fields["kid"]?.text
  }

  /// Whether the key has signed the assertion, with an algorithm of the key.
  func signed(_ assertion: ClientAssertion) -> Bool {
    guard algorithms.contains(assertion.algorithm) else { return false }
    let (signature, message) = (Data(assertion.signature), Data(assertion.signed))
    switch material {
    case .rsa(let key):
      return key.isValidSignature(
        _RSA.Signing.RSASignature(rawRepresentation: signature), for: SHA256.hash(data: message),
        padding: assertion.algorithm == "PS256" ? .PSS : .insecurePKCS1v1_5)
    case .p256(let key):
      guard let read = try? P256.Signing.ECDSASignature(rawRepresentation: signature) else { return false }
      return key.isValidSignature(read, for: message)
    case .ed25519(let key): return key.isValidSignature(signature, for: message)
    }
  }
}

/// The published keys of apps, fetched when they are needed.
///
/// Attack: somebody sends assertions with key ids that do not exist, and the gateway fetches the keys of an app again
/// and again. They are fetched once at a time, and at most every ten seconds.
final class ClientKeySets: Sendable {
  private struct Keys {
    let list: [PublishedKey]
    /// When the site answered.
    let at: Timestamp
  }

  private struct Entry {
    let fetchedAt: Timestamp
    let keys: Task<Keys, Never>
  }

  /// How long fetched keys are used.
  private static let life: Duration = .seconds(600)
  private static let pause: Duration = .seconds(10)
  /// How long the last keys of a site that does not answer count.
  ///
  /// Attack: a thief of a key keeps the site from answering after the app has withdrawn the key.
  private static let patience: Duration = .seconds(86_400)
  /// The maximum number of keys that are read from a set.
  private static let mostKeys = 32
  /// The maximum number of apps whose keys are kept.
  private static let most = 1000

  private let web: any WebClient
  private let clock: any GatewayClock
  private let entries = Mutex<[String: Entry]>([:])

  init(web: any WebClient, clock: any GatewayClock) {
    self.web = web
    self.clock = clock
  }

  /// The key that the assertion names; without a name, the only key with its algorithm.
  /// - Parameter url: where the app publishes its keys.
  func key(for assertion: ClientAssertion, at url: String) async -> PublishedKey? {
    if let known = Self.choose(from: await keys(at: url, notOlderThan: Self.life), for: assertion) { return known }
    return Self.choose(from: await keys(at: url, notOlderThan: Self.pause), for: assertion)
  }

  private static func choose(from keys: [PublishedKey], for assertion: ClientAssertion) -> PublishedKey? {
    let fitting = keys.filter { $0.algorithms.contains(assertion.algorithm) }
    guard let id = assertion.keyID else { return fitting.count == 1 ? fitting[0] : nil }
    return fitting.first { $0.id == id }
  }

  private func keys(at url: String, notOlderThan age: Duration) async -> [PublishedKey] {
    let now = clock.now()
    let entry = entries.withLock { entries -> Entry in
      let known = entries[url]
      if let known, now - known.fetchedAt < age { return known }
      let keys = Task<Keys, Never> { [web] in
        if let list = await Self.fetch(url, web) { return Keys(list: list, at: now) }
        // A site that does not answer for a while keeps no app from authenticating itself.
        guard let before = await known?.keys.value, now - before.at < Self.patience else {
          return Keys(list: [], at: now)
        }
        return before
      }
      let made = Entry(fetchedAt: now, keys: keys)
      if entries.count >= Self.most { entries = [:] }
      entries[url] = made
      return made
    }
    return await entry.keys.value.list
  }

  private static func fetch(_ url: String, _ web: any WebClient) async -> [PublishedKey]? {
    guard let answer = try? await web.send(WebRequest(url: url, headers: [("Accept", "application/json")])),
      answer.status == 200, let keys = try? JSONClaim.members(answer.body)["keys"]?.list
    else { return nil }
    return keys.prefix(mostKeys).compactMap { $0.members.flatMap(PublishedKey.init) }
  }
}
