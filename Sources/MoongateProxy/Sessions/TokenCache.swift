import MoongateCore
import NIOCore

/// A use of an access token that must be stored.
typealias TokenUse = (token: AccessToken, at: Timestamp, address: ClientAddress)

/// The access tokens in the memory of one event loop. It has its own cache, separate from sessions, so that wrong
/// tokens, which are all written to the ledger, do not delay users.
final class TokenCache {
  /// The interval at which uses are stored, unless the address changes.
  private static let interval: Duration = .seconds(30)
  /// The maximum number of uses waiting to be stored.
  private static let maxUses = 10_000

  let cache: SessionCache
  private let directory: AccessTokenDirectory?
  private var uses: [TokenUse] = []

  init(_ directory: AccessTokenDirectory?, eventLoop: any EventLoop, trust: CacheTrust = CacheTrust()) {
    self.directory = directory
    cache = SessionCache(eventLoop: eventLoop, remembersDead: false, trust: trust)
  }

  /// The cached result for a token. A locked address gets the same result for right and wrong tokens.
  func known(_ key: SessionKey, from address: ClientAddress, now: Timestamp) -> SessionCache.LookupResult {
    guard let directory else { return .none }
    switch directory.limiter.state(of: address, at: now) {
    case .locked(let until): return .locked(until: until)
    case .unknown: return .unknown
    case .open: return cache.known(key, now: now)
    }
  }

  /// The store lookup for a token of a request.
  /// - Parameter secret: nil for text that cannot be a token.
  func lookup(of secret: SecretText?, from address: ClientAddress) -> SessionCache.Lookup {
    { [directory] in
      guard let directory else { return .absent }
      switch try await directory.find(secret, from: address) {
      case .live(let snapshot): return .live(snapshot)
      case .locked(let until): return .locked(until: until)
      case .wrong: return .absent
      }
    }
  }

  /// The store lookup for a token that keeps a stream or socket open.
  func lookup(of id: String) -> SessionCache.Lookup {
    { [directory] in
      guard let directory, let snapshot = try await directory.find(id) else { return .absent }
      return .live(snapshot)
    }
  }

  /// Records a use of a token if it must be stored: at intervals, and when the address changes.
  func used(_ session: CachedSession, _ token: AccessToken, from address: ClientAddress, now: Timestamp) {
    guard now >= session.activityKnownUntil || address != session.lastAddress else { return }
    // Attack: one token from alternating addresses causes a write for every request.
    guard uses.count < Self.maxUses else { return }
    session.activityKnownUntil = now + Self.interval
    session.lastAddress = address
    let isKnown = uses.contains { $0.token.id == token.id && $0.address.networkKey == address.networkKey }
    if !isKnown { uses.append((token, now, address)) }
  }

  /// The uses since the last call.
  func takeUses() -> [TokenUse] {
    if uses.isEmpty { return [] }
    defer { uses = [] }
    return uses
  }
}
