import MoongateCore
import MoongateHTTP
import MoongateSDK

/// Maps calls without a flow id to the flow that an earlier call of the same session began, at any of the gateways that
/// share the store.
///
/// Entries are sealed, expire with the flow, and are bounded in number. A forgotten flow is answered with 404
/// `flow_not_found`, and the app requests another code.
struct RememberedFlows: Sendable {
  static let most = 100_000

  enum Key: Sendable {
    case verification(session: String)
    case reset(session: String)
    /// An email address that was registered but is not verified yet.
    case address(String)

    /// A key has at most 256 bytes, an address 254.
    fileprivate var text: String {
      switch self {
      case .verification(let session): "verify \(session)"
      case .reset(let session): "reset \(session)"
      case .address(let address): "@\(address)"
      }
    }
  }

  struct Entry: Sendable {
    let id: FlowID
    let session: String
    let account: String
    let expiresAt: Timestamp

    func with(session: String) -> Entry { Entry(id: id, session: session, account: account, expiresAt: expiresAt) }
  }

  let values: any KeyValueStore
  let clock: any GatewayClock

  func put(
    _ flow: FlowView, under keys: [Key], for session: SessionSnapshot, _ exchange: Exchange
  ) async throws(Refusal) {
    let entry = Entry(
      id: flow.id, session: session.session.id, account: session.account.id, expiresAt: flow.expiresAt)
    try await put(entry, under: keys, exchange)
  }

  /// - Throws: 503 if the store is unavailable. A store that is full forgets the flow.
  func put(_ entry: Entry, under keys: [Key], _ exchange: Exchange) async throws(Refusal) {
    let parts = [entry.id.secret.reveal(), entry.session, entry.account, String(entry.expiresAt.milliseconds)]
    let value = Array(parts.joined(separator: " ").utf8)
    let lifetime = min(entry.expiresAt - clock.now(), KeyValueLimits.lifetime.upperBound)
    for key in keys {
      _ = try await asking(exchange) { () async throws(KeyValueFault) in
        try await values.set(value, for: key.text, expiresIn: lifetime)
      }
    }
  }

  /// - Throws: 503 if the store is unavailable.
  func find(_ key: Key, _ exchange: Exchange) async throws(Refusal) -> Entry? {
    let value = try await asking(exchange) { () async throws(KeyValueFault) in try await values.value(for: key.text) }
    let parts = String(decoding: (value ?? nil) ?? [], as: UTF8.self).split(separator: " ").map(String.init)
    guard parts.count == 4, let end = Int64(parts[3]) else { return nil }
    return Entry(
      id: FlowID(text: parts[0]), session: parts[1], account: parts[2], expiresAt: Timestamp(milliseconds: end))
  }

  /// The answer of the store; nil if it refuses the entry.
  private func asking<Answer>(_ exchange: Exchange, _ body: () async throws(KeyValueFault) -> Answer)
    async throws(Refusal) -> Answer?
  {
    do throws(KeyValueFault) {
      return try await body()
    } catch {
      if case .unavailable = error { throw exchange.refusal(.storeUnavailable, fault: error.description) }
      return nil
    }
  }
}
