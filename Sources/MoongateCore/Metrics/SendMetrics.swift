import MoongateSDK
import Synchronization

/// Counts sent codes by destination. Shows what causes the SMS bill, and SMS pumping.
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

  /// - Parameter isDelivered: whether the carrier accepted the message.
  func record(_ provider: ProviderName, to identifier: Identifier, isDelivered: Bool) {
    let channel: MessageChannel = identifier.kind == .email ? .mail : .sms
    let key = Key(
      provider: provider.rawValue, channel: channel.rawValue, country: Self.country(identifier),
      outcome: isDelivered ? "delivered" : "failed")
    counts.withLock { $0[key, default: 0] += 1 }
  }

  /// Attack: labels that a client chooses would create an unlimited number of series. A country must have two letters
  /// (ISO 3166-1), otherwise it is counted as `other`.
  private static func country(_ identifier: Identifier) -> String {
    guard let country = identifier.attributes["country"] else { return "none" }
    return country.utf8.count == 2 && country.utf8.allSatisfy { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
      ? country : "other"
  }

  /// The metrics for Prometheus.
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
