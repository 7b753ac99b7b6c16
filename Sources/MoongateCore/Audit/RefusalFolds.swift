import MoongateSDK

/// Turns a flood of refusals into one event per minute, kind and address.
///
/// The first refusals of a kind from an address are stored one by one, with all that led to them. Beyond that they
/// share one event, with its count, and each of them carries that event's decision id: so every id that a client is
/// given can be looked up, at once and as long as the event is kept.
struct RefusalFolds: Sendable {
  /// So many refusals of one kind from one address are stored one by one in a minute.
  static let singles = 10
  /// So many of all kinds and addresses are stored one by one in a minute.
  static let mostSingles = 3_000
  /// So many kinds and addresses are told apart in a minute. Beyond them refusals of one kind share an event whatever
  /// address they are from.
  static let mostKeys = 10_000
  private static let minute: Int64 = 60_000

  /// What is alike in the refusals of a flood.
  private struct Key: Hashable {
    let code: String?
    let provider: ProviderName?
    /// The rule of a policy that refused, or the reason that a page tells.
    let rule: String?
    let address: String?
    /// Whether it is for all addresses that came too late to be told apart.
    var isShared = false
  }

  private var minute: Int64 = .min
  private var seen: [Key: Int] = [:]
  private var folds: [Key: AuditEvent] = [:]
  private var keys: [DecisionID: Key] = [:]
  private var stored = 0

  /// What becomes of a refusal.
  enum Disposition: Equatable {
    /// It is stored by itself.
    case single
    /// It is the first of a flood: this event is stored, and counts from now on.
    case opened(AuditEvent)
    /// It counts in the event with this id.
    case counted(DecisionID)
  }

  /// Takes a refusal in. `end(before:)` comes first.
  mutating func take(_ event: AuditEvent) -> Disposition {
    var key = Key(
      code: event.code, provider: event.provider, rule: event.detail["rule"] ?? event.detail["reason"],
      address: event.address.map(Self.counted))
    if seen[key] == nil, seen.count >= Self.mostKeys {
      key = Key(code: event.code, provider: nil, rule: nil, address: nil, isShared: true)
    }
    if let fold = folds[key] {
      folds[key]?.count = (fold.count ?? 1) + 1
      // A flood that goes through many people is about none of them.
      if fold.account != event.account { folds[key]?.account = nil }
      if fold.identifier != event.identifier { folds[key]?.identifier = nil }
      return .counted(fold.id)
    }
    seen[key, default: 0] += 1
    if seen[key, default: 0] <= Self.singles, stored < Self.mostSingles, !key.isShared {
      stored += 1
      return .single
    }
    var fold = event
    fold.count = 1
    if key.isShared { fold.address = nil }
    folds[key] = fold
    keys[fold.id] = key
    return .opened(fold)
  }

  /// The event as it counts at the moment; nil where no flood of this minute has the id.
  func fold(_ id: DecisionID) -> AuditEvent? { keys[id].flatMap { folds[$0] } }

  /// Ends the minutes before the one of this moment.
  /// - Returns: the events of their floods, with their counts.
  mutating func end(before moment: Timestamp) -> [AuditEvent] {
    let now = moment.milliseconds / Self.minute
    if now <= minute { return [] }
    let ended = end()
    minute = now
    return ended
  }

  /// Ends the minute at hand.
  mutating func end() -> [AuditEvent] {
    let ended = folds.values.filter { ($0.count ?? 1) > 1 }
    (seen, folds, keys, stored) = ([:], [:], [:], 0)
    return ended.sorted { $0.id.text < $1.id.text }
  }

  /// An IPv6 address counts by its /64.
  private static func counted(_ address: String) -> String {
    guard address.contains(":"), let parsed = IPAddressText.parse(address.utf8) else { return address }
    return ClientAddress.text(parsed.countingKey)
  }
}
