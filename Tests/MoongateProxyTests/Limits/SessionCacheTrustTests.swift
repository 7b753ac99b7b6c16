import MoongateCore
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import MoongateProxy

/// While another process uses the store, caches are not used.
@Suite struct SessionCacheTrustTests {
  private let loop = MultiThreadedEventLoopGroup.singleton.next()
  private let key = SessionKey(hashing: Array("token".utf8))
  private let now = Timestamp(milliseconds: 1)

  private func isKnown(_ cache: NIOLoopBound<SessionCache>) async throws -> Bool {
    try await loop.submit { [key, now] in
      if case .unknown = cache.value.known(key, now: now) { return false }
      return true
    }.get()
  }

  /// Attack: a stolen token is used at one process right after its owner signed out at the other.
  @Test func asksForEachRequestWithoutTrust() async throws {
    let trust = CacheTrust()
    let cache = try await loop.submit { [loop] in
      NIOLoopBound(SessionCache(eventLoop: loop, remembersDead: true, trust: trust), eventLoop: loop)
    }.get()
    let answered = loop.makePromise(of: Void.self)
    loop.execute { [key] in cache.value.ask(key, by: { .absent }) { _ in answered.succeed() } }
    try await answered.futureResult.get()
    #expect(try await isKnown(cache))
    trust.set(false)
    #expect(try await !isKnown(cache))
    trust.set(true)
    #expect(try await isKnown(cache))
  }

  /// Attack: the same, with a request that joins a lookup from before the sign-out.
  @Test func joinsNoEarlierQuestionWithoutTrust() async throws {
    let trust = CacheTrust()
    trust.set(false)
    let cache = try await loop.submit { [loop] in
      NIOLoopBound(SessionCache(eventLoop: loop, remembersDead: true, trust: trust), eventLoop: loop)
    }.get()
    let asked = AskedCount()
    let answered = (0..<2).map { _ in loop.makePromise(of: Void.self) }
    try await loop.submit { [key] in
      for promise in answered {
        cache.value.ask(
          key,
          by: {
            asked.add()
            return .absent
          }
        ) { _ in promise.succeed() }
      }
    }.get()
    for promise in answered { try await promise.futureResult.get() }
    #expect(asked.count == 2)
  }
}

private final class AskedCount: Sendable {
  private let value = Atomic<Int>(0)

  var count: Int { value.load(ordering: .acquiring) }

  func add() { value.add(1, ordering: .acquiringAndReleasing) }
}
