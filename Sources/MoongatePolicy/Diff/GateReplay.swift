import Foundation
import MoongateCore
import MoongateSDK

/// Replays recorded decisions against two generations, provider by provider, and counts the decisions that the newer
/// one changes.
///
/// Each generation begins with empty counters. Users are distinguished by the keyed hashes in the audit trail.
/// Decisions that depend on a number's country or an account's age are therefore replayed with made-up values.
/// Decisions about requests to services are not replayed.
package struct GateReplay: Sendable {
  /// The maximum number of decisions to replay. The newest are used.
  package static let maxEvents = 20_000
  /// The kinds of events that record steps of users.
  package static let kinds: Set<AuditEvent.Kind> = [.codeSent, .codeVerified, .refused]

  /// Decisions of one provider with a different result.
  package struct DecisionChange: Sendable, Equatable {
    package let provider: ProviderName
    package let act: String
    package let old: String
    package let new: String
    package let rule: String?
    package let count: Int

    /// Such as `3 × phone_otp right: ok → too_many_attempts (policies/phone_otp.lua:12)`.
    package var text: String { "\(count) × \(provider) \(act): \(old) → \(new)" + (rule.map { " (\($0))" } ?? "") }
  }

  /// The result of a replay.
  package struct Outcome: Sendable, Equatable {
    package var decisions = 0
    package var changed = 0
    /// The most frequent first.
    package var flips: [DecisionChange] = []
    /// Decisions of providers that cannot be replayed, such as federated ones.
    package var unplayed: [ProviderName: Int] = [:]

    /// The share of changed decisions; 0 if nothing was replayed.
    package var share: Double { decisions == 0 ? 0 : Double(changed) / Double(decisions) }
  }

  private let events: [AuditEvent]

  /// - Parameter events: the recorded events, newest first.
  package init(events: [AuditEvent]) { self.events = Array(events.prefix(Self.maxEvents)) }

  /// Replays the events.
  /// - Throws: `CancellationError`; errors of the store; the reason why the active generation cannot be replayed.
  package func run(
    old: any PolicyGeneration, new: any PolicyGeneration, providers: ProviderRegistry, makeStore: () throws -> any Store
  ) async throws -> Outcome {
    var outcome = Outcome()
    let known = old.registry ?? providers
    for name in Set(events.compactMap(\.provider)).sorted() {
      guard let descriptor = known.descriptor(name) else { continue }
      let traffic = try Traffic(recorded: try recorded(of: name), of: descriptor)
      guard !traffic.acts.isEmpty else { continue }
      guard (try? Target(old, name, of: known, wantsNew: false)) != nil, old.policies[name] != nil else {
        outcome.unplayed[name] = traffic.acts.count
        continue
      }
      outcome.decisions += traffic.acts.count
      guard new.policies[name] != nil, (try? Target(new, name, of: new.registry ?? providers, wantsNew: false)) != nil
      else {
        outcome.changed += traffic.acts.count
        outcome.flips.append(
          DecisionChange(
            provider: name, act: "any", old: "answered", new: "no such provider", rule: nil, count: traffic.acts.count))
        continue
      }
      let diff = try await PolicyDiff(
        old: old, new: new, provider: name, traffic: traffic, providers: providers, makeStore: makeStore)
      outcome.changed += diff.flips.map(\.count).reduce(0, +)
      outcome.flips += diff.flips.map {
        DecisionChange(provider: name, act: $0.act, old: $0.old, new: $0.new, rule: $0.rule, count: $0.count)
      }
    }
    outcome.flips.sort { ($1.count, $0.text) < ($0.count, $1.text) }
    return outcome
  }

  /// The provider's events as lines of a log, oldest first.
  private func recorded(of name: ProviderName) throws -> Data {
    let encoder = JSONEncoder()
    var lines = Data()
    for event in events.reversed() where event.provider == name {
      lines += try encoder.encode(Line(event)) + [UInt8(ascii: "\n")]
    }
    return lines
  }

  /// An event in the format of `GET /events`.
  private struct Line: Encodable {
    let at: String
    let kind: String
    let code: String?
    let provider: String?
    let identifier: String?
    let account: String?
    let address: String?
    let detail: [String: String]

    init(_ event: AuditEvent) {
      at = event.at.exactText
      kind = event.kind.rawValue
      code = event.code
      provider = event.provider?.rawValue
      identifier = event.identifier
      account = event.account
      address = event.address
      detail = event.detail.filter { $0.key == "act" }
    }
  }
}
