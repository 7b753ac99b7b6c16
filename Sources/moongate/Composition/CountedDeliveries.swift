import CoreMetrics
import MoongateCore
import MoongateSDK

/// Records the count, duration and trace span of every delivery.
struct CountedDeliveries: DeliveryService {
  let base: any DeliveryService

  func messenger(for settings: DeliverySettings) -> any Messenger {
    CountedMessenger(base: base.messenger(for: settings))
  }
}

private struct CountedMessenger: Messenger {
  let base: any Messenger

  func send(_ message: Message) async throws(DeliveryFault) {
    let began = ContinuousClock.now
    do {
      try await traced("deliver \(message.channel.rawValue)", .client) { () async throws(DeliveryFault) in
        try await base.send(message)
      }
    } catch {
      count(message, "failed", since: began)
      throw error
    }
    count(message, "delivered", since: began)
  }

  private func count(_ message: Message, _ outcome: String, since began: ContinuousClock.Instant) {
    let channel = message.channel.rawValue
    Counter(label: MetricDefinition.deliveriesTotal.name, dimensions: [("channel", channel), ("outcome", outcome)])
      .increment()
    let took = ContinuousClock.now - began
    Timer(label: MetricDefinition.deliverySeconds.name, dimensions: [("channel", channel)]).recordNanoseconds(
      took.wholeNanoseconds)
  }
}
