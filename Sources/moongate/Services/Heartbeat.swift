import Foundation
import MoongateCore
import MoongateProgram
import MoongateSDK
import ServiceLifecycle
import Synchronization

/// Announces this gateway, its generation and its master keys to the other gateways of the store, and reads their
/// announcements.
final class Heartbeat: Service {
  private static let interval: Duration = .seconds(3)
  /// The interval at which changes of the announcement are detected.
  private static let look: Duration = .milliseconds(500)

  /// Identifies this gateway among those of the store.
  let id: String
  private let store: any NodeStore
  private let generations: ActiveGeneration
  private let keys: KeyRing
  private let clock: any GatewayClock
  private let latest = Mutex<(nodes: [ServingNode], at: Timestamp)?>(nil)

  /// More than five parameters: one for each service.
  /// - Parameter address: the public listener, as a recognizable part of the id.
  init(
    store: any NodeStore, generations: ActiveGeneration, keys: KeyRing, address: ListenAddress, clock: any GatewayClock,
    random: any RandomSource
  ) {
    // The random part distinguishes a restarted gateway from its killed predecessor.
    id = "\(ProcessInfo.processInfo.hostName) \(address) \(Base64URL.encode(random.bytes(4)))"
    self.store = store
    self.generations = generations
    self.keys = keys
    self.clock = clock
  }

  /// - Throws: `StartProblem` if the store now belongs to another master key.
  func run() async throws {
    let isAlien = try? await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        guard await self.isOurs() else { return true }
        let announced = await self.announce()
        // Announce changes at once: a key rotation waits until all gateways know the key.
        let next = ContinuousClock.now + Self.interval
        while ContinuousClock.now < next, announced == self.news { try await Task.sleep(for: Self.look) }
      }
      return false
    }
    try? await store.leave(id, at: clock.now())
    if isAlien ?? false {
      throw StartProblem(
        "The store now belongs to another master key: the oldest key was retired while this gateway was offline. Copy the new key file to it, then start it."
      )
    }
  }

  /// Whether the store still belongs to this gateway's oldest key.
  /// Attack: a gateway that was offline for so long that it counted as gone returns after the oldest key was retired.
  /// It would count attempts under the old key, which doubles an attacker's attempts.
  private func isOurs() async -> Bool { (try? await store.answers(to: keys.fingerprint)) ?? true }

  private var news: [String] { [generations.current.id] + keys.names }

  /// Announces this gateway. If the store does not answer, the known nodes become outdated; other services report the
  /// failure.
  /// - Returns: the announced values.
  private func announce() async -> [String] {
    let (now, news) = (clock.now(), news)
    let node = ServingNode(id: id, generation: news[0], seenAt: now, keys: Array(news.dropFirst()))
    if let nodes = try? await store.recordHeartbeat(node) { latest.withLock { $0 = (nodes, now) } }
    return news
  }

  /// The running gateways including this one; nil if the store has not answered for too long.
  var nodes: [ServingNode]? {
    let oldest = clock.now() - ServingNode.livenessTimeout
    return latest.withLock { latest in latest.flatMap { $0.at > oldest ? $0.nodes : nil } }
  }

  /// The metrics; empty while the nodes are unknown, because a wrong number would be worse.
  var families: [MetricFamily] {
    guard let nodes else { return [] }
    return [
      MetricFamily(.nodes, nodes.count),
      MetricFamily(.generations, Set(nodes.map(\.generation)).count),
    ]
  }
}
