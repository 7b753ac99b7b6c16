import MoongateCore
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import MoongateProxy

/// While another process serves from the store, nothing that is remembered is believed.
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

  /// Attack: a copied token is used at the one process, in the moment after its owner signed out at the other one.
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

  /// Attack: the same, with the use joined to a question that was asked before the sign-out.
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
