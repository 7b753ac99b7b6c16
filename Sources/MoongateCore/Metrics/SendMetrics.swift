import MoongateSDK
import Synchronization

/// Counts codes that were sent, by where they went: what a bill is about, and what SMS pumping shows in.
package final class SendMetrics: Sendable {
  private struct Key: Hashable, Comparable {
    let provider: String
    let channel: String
    let country: String
    let outcome: String

    static func < (left: Self, right: Self) -> Bool {
      (left.provider, left.channel, left.country, left.outcome) < (
        right.provider, right.channel, right.country, right.outcome
      )
    }
  }

  private let counts = Mutex<[Key: UInt64]>([:])

  /// - Parameter isDelivered: whether the site took the message.
  func record(_ provider: ProviderName, to identifier: Identifier, isDelivered: Bool) {
    let channel: MessageChannel = identifier.kind == .email ? .mail : .sms
    let key = Key(
      provider: provider.rawValue, channel: channel.rawValue, country: Self.country(identifier),
      outcome: isDelivered ? "delivered" : "failed")
    counts.withLock { $0[key, default: 0] += 1 }
  }

  /// Attack: labels that a client chooses would make metrics without end. A country has two letters (ISO 3166-1), or it
  /// is none.
  private static func country(_ identifier: Identifier) -> String {
    guard let country = identifier.attributes["country"] else { return "none" }
    return country.utf8.count == 2 && country.utf8.allSatisfy { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
      ? country : "other"
  }

  /// As Prometheus reads it.
  package var families: [MetricFamily] {
    [
      MetricFamily(
        .sendsTotal,
        counts.withLock { $0 }.sorted { $0.key < $1.key }.map {
          MetricFamily.Sample(
            [
              ("provider", $0.key.provider), ("channel", $0.key.channel), ("country", $0.key.country),
              ("outcome", $0.key.outcome),
            ], Double($0.value))
        })
    ]
  }
}
