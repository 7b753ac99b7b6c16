import MoongateCore
import NIOCore

/// A use of a token that is to be written down.
typealias TokenUse = (token: AccessToken, at: Timestamp, address: ClientAddress)

/// The tokens of programs that one event loop remembers: a cache like that of sessions, with places of its own, so that
/// wrong tokens, each of which is written into the ledger, hold up nobody who is signed in.
final class TokenCache {
  /// How often a use is written down, unless it comes from another address.
  private static let interval: Duration = .seconds(30)
  /// The most uses that wait to be written.
  private static let mostUses = 10_000

  let cache: SessionCache
  private let directory: AccessTokenDirectory?
  private var uses: [TokenUse] = []

  init(_ directory: AccessTokenDirectory?, eventLoop: any EventLoop, trust: CacheTrust = CacheTrust()) {
    self.directory = directory
    cache = SessionCache(eventLoop: eventLoop, remembersDead: false, trust: trust)
  }

  /// What is known of a token without asking. A locked address is told so whether its token is right or wrong.
  func known(_ key: SessionKey, from address: ClientAddress, now: Timestamp) -> SessionCache.Answer {
    guard let directory else { return .none }
    switch directory.limiter.standing(of: address, at: now) {
    case .locked(let until): return .locked(until: until)
    case .unknown: return .unknown
    case .open: return cache.known(key, now: now)
    }
  }

  /// How the store is asked for a token that a request brings.
  /// - Parameter secret: nil for a text that cannot be a token.
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

  /// How it is asked again for a token that something lives by.
  func lookup(of id: String) -> SessionCache.Lookup {
    { [directory] in
      guard let directory, let snapshot = try await directory.find(id) else { return .absent }
      return .live(snapshot)
    }
  }

  /// Notes that a token was used, where that is to be written down: now and then, and when it comes from somewhere
  /// else.
  func used(_ session: CachedSession, _ token: AccessToken, from address: ClientAddress, now: Timestamp) {
    guard now >= session.activityKnownUntil || address != session.lastAddress else { return }
    // Attack: one token from many addresses in turn, for a write with each request.
    guard uses.count < Self.mostUses else { return }
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
