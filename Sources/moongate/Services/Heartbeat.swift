import Foundation
import MoongateCore
import MoongateSDK
import ServiceLifecycle
import Synchronization

/// Tells the other gateways of the store that this one serves, by which generation, and which master keys it knows; and
/// knows of them.
final class Heartbeat: Service {
  private static let interval: Duration = .seconds(3)
  /// How often it looks whether there is something new to tell.
  private static let look: Duration = .milliseconds(500)

  /// Names this gateway among those of the store.
  let id: String
  private let store: any NodeStore
  private let generations: ActiveGeneration
  private let keys: KeyRing
  private let clock: any GatewayClock
  private let latest = Mutex<(nodes: [ServingNode], at: Timestamp)?>(nil)

  /// - Parameter address: what it listens on, by which people know it.
  init(
    store: any NodeStore, generations: ActiveGeneration, keys: KeyRing, address: ListenAddress, clock: any GatewayClock,
    random: any RandomSource
  ) {
    // With something random: a gateway that was killed and started again must not be taken for the one before.
    id = "\(ProcessInfo.processInfo.hostName) \(address) \(Base64URL.encode(random.bytes(4)))"
    self.store = store
    self.generations = generations
    self.keys = keys
    self.clock = clock
  }

  /// - Throws: `StartProblem` once the store is that of another master key.
  func run() async throws {
    let isAlien = try? await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        guard await self.isOurs() else { return true }
        let told = await self.beat()
        // What has changed is told at once: whoever rotates a key waits until all know it.
        let next = ContinuousClock.now + Self.interval
        while ContinuousClock.now < next, told == self.news { try await Task.sleep(for: Self.look) }
      }
      return false
    }
    try? await store.leave(id, at: clock.now())
    if isAlien ?? false {
      throw StartProblem(
        "The store answers to another master key now: the oldest one was retired while nothing was heard of this gateway. Give it the new key file, then start it."
      )
    }
  }

  /// Attack: a gateway that was stopped or cut off for so long that it counted as gone, and comes back after the oldest
  /// key was retired. It counts by the key that is gone, and who guesses has all of his tries twice.
  private func isOurs() async -> Bool { (try? await store.answers(to: keys.fingerprint)) ?? true }

  private var news: [String] { [generations.current.id] + keys.names }

  /// A store that does not answer is told of elsewhere: what was known gets old.
  /// - Returns: what there was to tell.
  private func beat() async -> [String] {
    let (now, news) = (clock.now(), news)
    let node = ServingNode(id: id, generation: news[0], seenAt: now, keys: Array(news.dropFirst()))
    if let nodes = try? await store.beat(node) { latest.withLock { $0 = (nodes, now) } }
    return news
  }

  /// Those that serve, this one among them; nil where the store has not told for too long.
  var nodes: [ServingNode]? {
    let oldest = clock.now() - ServingNode.patience
    return latest.withLock { latest in latest.flatMap { $0.at > oldest ? $0.nodes : nil } }
  }

  /// Nothing while it is not known: a number that is not so would be worse than none.
  var families: [MetricFamily] {
    guard let nodes else { return [] }
    return [
      MetricFamily(.nodes, nodes.count),
      MetricFamily(.generations, Set(nodes.map(\.generation)).count),
    ]
  }
}
