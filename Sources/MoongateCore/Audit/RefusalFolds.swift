import MoongateSDK

/// Combines a flood of refusals into one event per minute, kind and address.
///
/// The first refusals of a kind from an address are stored individually with all their details. Further ones share one
/// event with a count, and carry that event's decision ID. Every ID that a client receives can therefore be looked up,
/// immediately and for as long as the event is stored.
struct RefusalFolds: Sendable {
  /// The number of refusals of one kind from one address that are stored individually per minute.
  static let singles = 10
  /// The number of refusals of all kinds and addresses that are stored individually per minute.
  static let maxSingles = 3_000
  /// The number of different kinds and addresses per minute. Beyond that, refusals of one kind from all addresses share
  /// an event.
  static let maxKeys = 10_000
  private static let minute: Int64 = 60_000

  /// The common properties of the refusals of a flood.
  private struct Key: Hashable {
    let kind: AuditEvent.Kind
    let code: String?
    let provider: ProviderName?
    /// The policy rule that refused, or the reason that a page reported.
    let rule: String?
    let address: String?
    /// Whether this is the shared key of all addresses beyond `maxKeys`.
    var isShared = false
  }

  private var minute: Int64 = .min
  private var seen: [Key: Int] = [:]
  private var folds: [Key: AuditEvent] = [:]
  private var keys: [DecisionID: Key] = [:]
  private var stored = 0

  /// What to do with a refusal.
  enum Disposition: Equatable {
    /// Store it individually.
    case single
    /// It is the first of a flood: store this event, which counts further refusals.
    case opened(AuditEvent)
    /// It was counted in the event with this ID.
    case counted(DecisionID)
  }

  /// Handles a refusal. Call `end(before:)` first.
  mutating func take(_ event: AuditEvent) -> Disposition {
    var key = Key(
      kind: event.kind, code: event.code, provider: event.provider,
      rule: event.detail["rule"] ?? event.detail["reason"], address: event.address.map(Self.counted))
    if seen[key] == nil, seen.count >= Self.maxKeys {
      key = Key(kind: event.kind, code: event.code, provider: nil, rule: nil, address: nil, isShared: true)
    }
    if let fold = folds[key] {
      folds[key]?.count = (fold.count ?? 1) + 1
      // A flood that concerns several accounts or identifiers names none of them.
      if fold.account != event.account { folds[key]?.account = nil }
      if fold.identifier != event.identifier { folds[key]?.identifier = nil }
      return .counted(fold.id)
    }
    seen[key, default: 0] += 1
    if seen[key, default: 0] <= Self.singles, stored < Self.maxSingles, !key.isShared {
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

  /// The event with its current count; nil if no flood of this minute has the ID.
  func fold(_ id: DecisionID) -> AuditEvent? { keys[id].flatMap { folds[$0] } }

  /// Ends all minutes before this time.
  /// - Returns: the events of their floods, with their counts.
  mutating func end(before moment: Timestamp) -> [AuditEvent] {
    let now = moment.milliseconds / Self.minute
    if now <= minute { return [] }
    let ended = end()
    minute = now
    return ended
  }

  /// Ends the current minute.
  mutating func end() -> [AuditEvent] {
    let ended = folds.values.filter { ($0.count ?? 1) > 1 }
    (seen, folds, keys, stored) = ([:], [:], [:], 0)
    return ended.sorted { $0.id.text < $1.id.text }
  }

  /// IPv6 addresses are combined by their /64.
  private static func counted(_ address: String) -> String {
    guard address.contains(":"), let parsed = IPAddressText.parse(address.utf8) else { return address }
    return ClientAddress.text(parsed.countingKey)
  }
}
