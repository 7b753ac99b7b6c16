import MoongateCore
import MoongateSDK

/// The most messages and accounts that a policy allows an attacker to cause, who has any number of addresses, phone
/// numbers and devices.
///
/// Only limits per identifier bound the messages to one user, and only global limits and limits per provider bound the
/// total. Limits per address, network, prefix or country only bound an attacker who has few of them. Ceilings on
/// messages and begins do not count trusted devices. An attacker has none: a trusted device has signed in to the
/// account that receives the code.
package struct CostBudget: Sendable, Equatable, Encodable {
  package let provider: String
  /// The most messages to one user in any 24 hours: the messages that attackers cause, and as many again by the user's
  /// devices. Nil: unbounded, or the provider sends no codes.
  package let messagesToOnePerDay: Int?
  /// The most messages in any hour that new devices cause. Nil: unbounded, or the provider sends no codes.
  package let messagesPerHour: Int?
  /// The most accounts in any hour; nil: unbounded.
  package let accountsPerHour: Int?
  let sendsCodes: Bool

  enum CodingKeys: String, CodingKey {
    case provider
    case messagesToOnePerDay = "messages_to_one_per_day"
    case messagesPerHour = "messages_per_hour"
    case accountsPerHour = "accounts_per_hour"
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(provider, forKey: .provider)
    try container.encode(messagesToOnePerDay, forKey: .messagesToOnePerDay)
    try container.encode(messagesPerHour, forKey: .messagesPerHour)
    try container.encode(accountsPerHour, forKey: .accountsPerHour)
  }

  package init(_ policy: ProviderPolicy) {
    provider = policy.provider.rawValue
    sendsCodes = policy.code != .none
    func most(_ action: LimitAction, in span: Duration, _ bounds: (LimitKey) -> Bool) -> Int? {
      policy.limits.compactMap { limit in
        guard limit.action == action, limit.counts == .all, bounds(limit.key), let window = limit.window?.lowest else {
          return nil
        }
        // A window can begin at any time, so this many windows overlap the span.
        let windows = (span.wholeMilliseconds + window.wholeMilliseconds - 1) / max(1, window.wholeMilliseconds)
        let (product, overflow) = limit.max.highest.multipliedReportingOverflow(by: Int(windows))
        return overflow ? nil : product
      }.min()
    }
    let isShared = { (key: LimitKey) in key == .global || key == .provider }
    messagesToOnePerDay =
      sendsCodes
      ? most(.send, in: .seconds(86_400), { $0 == .identifier || $0 == .phone || $0 == .email }).map { $0 * 2 } : nil
    messagesPerHour = sendsCodes ? most(.send, in: .seconds(3600), isShared) : nil
    accountsPerHour = most(.register, in: .seconds(3600), isShared)
  }

  /// A table for terminals, 80 columns wide.
  /// - Parameter colour: whether to use terminal colours.
  package static func table(_ costs: [CostBudget], colour: Bool) -> String {
    guard !costs.isEmpty else { return "" }
    let style = TerminalStyle(isOn: colour)
    let name = max(12, costs.map(\.provider.count).max() ?? 0)
    var lines = [
      style.dim("\(Columns.pad("cost budget", to: name))   to one a day   messages an hour   accounts an hour")
    ]
    func number(_ count: Int?, _ isThere: Bool = true) -> String {
      isThere ? count.map(String.init) ?? "unlimited" : "-"
    }
    for cost in costs {
      lines.append(
        Columns.pad(cost.provider, to: name) + Columns.right(number(cost.messagesToOnePerDay, cost.sendsCodes), to: 15)
          + Columns.right(number(cost.messagesPerHour, cost.sendsCodes), to: 19)
          + Columns.right(number(cost.accountsPerHour), to: 19))
    }
    lines.append(style.dim("for attackers with any number of addresses; limits per address bound those with few"))
    return lines.joined(separator: "\n")
  }
}
