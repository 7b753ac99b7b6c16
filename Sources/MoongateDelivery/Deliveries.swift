import Logging
import MoongateCore
import MoongateSDK
import Synchronization

/// Provides the delivery channel of each message settings in gateway.lua. All providers with `outbox()` share one
/// outbox. Providers with equal settings share one channel with its queue and circuit breaker, also across reloads.
package final class Deliveries: DeliveryService {
  /// The maximum number of channels: those of the active generation and some of its predecessors.
  private static let most = 32

  /// The messages of `GET /outbox`.
  package let outbox: Outbox
  private let clock: any GatewayClock
  private let random: any RandomSource
  private let web: any WebClient
  private let logger: Logger
  /// Ordered by last use; the most recent is last.
  private let known = Mutex<[(settings: DeliverySettings, messenger: GuardedMessenger)]>([])

  package init(outbox: Outbox, clock: any GatewayClock, random: any RandomSource, web: any WebClient, logger: Logger) {
    self.outbox = outbox
    self.clock = clock
    self.random = random
    self.web = web
    self.logger = logger
  }

  package func messenger(for settings: DeliverySettings) -> any Messenger {
    if settings == .outbox { return outbox }
    return known.withLock { known -> any Messenger in
      if let index = known.firstIndex(where: { $0.settings == settings }) {
        let found = known.remove(at: index)
        known.append(found)
        return found.messenger
      }
      guard let transport = transport(for: settings) else { return outbox }
      let messenger = GuardedMessenger(transport, clock: clock, logger: logger)
      if known.count >= Self.most { known.removeFirst() }
      known.append((settings, messenger))
      return messenger
    }
  }

  /// The metrics. If several settings name one site, its worst state counts.
  package var families: [MetricFamily] {
    let states = Dictionary(known.withLock { $0 }.map(\.messenger.breaker).map { ($0.site, $0.state) }) { max($0, $1) }
    return [
      MetricFamily(
        .deliveryBreakerState,
        states.sorted { $0.key < $1.key }.map { MetricFamily.Sample([("site", $0.key)], Double($0.value)) })
    ]
  }

  /// The transport; nil for the outbox.
  private func transport(for settings: DeliverySettings) -> (any MessageTransport)? {
    switch settings {
    case .outbox: nil
    case .smtp(let settings): MailTransport(settings, clock: clock, random: random)
    case .webhook(let settings): WebhookTransport(settings: settings, web: web)
    case .twilio(let settings): TwilioTransport(settings: settings, web: web)
    }
  }
}
