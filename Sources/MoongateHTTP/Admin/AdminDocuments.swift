import MoongateCore
import MoongateSDK

/// The JSON documents for operators, shared by the admin listener and the commands.
package enum OperatorDocument {
  /// `GET /locks`, `moongate locks list --json`.
  package static func locks(_ locks: [NamedLock], at now: Timestamp) -> [UInt8] {
    JSONValue.list(locks.map { .lock($0, at: now) }).bytes
  }

  /// `GET /accounts/{id}`, `moongate account show --json`.
  package static func overview(_ overview: AccountOverview, at now: Timestamp) -> [UInt8] {
    JSONValue.overview(overview, at: now).bytes
  }

  /// `POST /accounts/{id}/unlock`, `moongate account unlock --json`.
  package static func unlocking(_ unlocking: Unlocking, of account: String, at now: Timestamp) -> [UInt8] {
    JSONValue.unlocking(unlocking, of: account, at: now).bytes
  }

  /// `GET /events`, `moongate account history --json`.
  package static func events(_ events: [AuditEvent]) -> [UInt8] { JSONValue.list(events.map { .event($0) }).bytes }

  /// `GET /accounts/{id}/export`, `moongate account export NAME`.
  package static func export(_ export: AccountExport) -> [UInt8] { JSONValue.export(export).bytes }
}

extension JSONValue {
  static func lock(_ named: NamedLock, at now: Timestamp) -> JSONValue {
    let lock = named.lock
    return .members([
      "id": .text(lock.id), "provider": .text(lock.provider.rawValue), "limit": .text(lock.limit),
      "since": .text(lock.since.text),
      "until": .optional(lock.until?.text),
      "remaining": .optional(lock.until.map { max(0, Int(($0 - now).components.seconds)) }),
      "identifier": named.identifier.map { .members(["kind": .text($0.kind.rawValue), "value": .text($0.value)]) }
        ?? .null,
      "account": .optional(named.account), "per": .optional(named.key?.rawValue),
      "policy": .optional(named.location?.description),
      "failures": .number(named.failures),
      "sources": .list(named.sources.map { .members(["address": .text($0.address), "count": .number($0.count)]) }),
    ])
  }

  static func overview(_ overview: AccountOverview, at now: Timestamp) -> JSONValue {
    guard case .object(let account) = JSONValue.operated(overview.account) else { return .null }
    return .object(
      account + [
        JSONMember(name: "locks", value: .list(overview.locks.map { .lock($0, at: now) })),
        JSONMember(
          name: "factors",
          value: .list(
            overview.factors.map {
              .members([
                "provider": .text($0.provider.rawValue), "added_at": .text($0.addedAt.text),
                "changed_at": .text($0.changedAt.text),
              ])
            })), JSONMember(name: "sessions", value: .list(overview.sessions.map { .listed($0) })),
        JSONMember(name: "devices", value: .list(overview.devices.map { .device($0) })),
        JSONMember(name: "tokens", value: .list(overview.tokens.map { .personal($0) })),
        JSONMember(
          name: "sign_ins",
          value: .list(
            overview.signIns.map {
              .members([
                "id": .text($0.id.text), "at": .text($0.at.text), "flow": .optional($0.flow),
                "address": .optional($0.address),
              ])
            })),
      ])
  }

  static func unlocking(_ unlocking: Unlocking, of account: String, at now: Timestamp) -> JSONValue {
    .members([
      "account": .text(account), "was_locked": .flag(unlocking.wasLocked),
      "locks": .list(unlocking.locks.map { .lock($0, at: now) }),
    ])
  }

  /// An account as operators see it.
  static func operated(_ account: Account) -> JSONValue {
    .members([
      "id": .text(account.id), "first_name": .optional(account.firstName), "last_name": .optional(account.lastName),
      "created_at": .text(account.createdAt.text), "last_seen_at": .text(account.lastSeenAt.text),
      "locked": .flag(account.isLocked),
      "identifiers": .list(
        account.identifiers.map {
          .members([
            "kind": .text($0.identifier.kind.rawValue), "value": .text($0.identifier.value),
            "verified_at": .optional($0.verifiedAt?.text),
          ])
        }), "credentials": .list(account.credentials.sorted().map { .text($0.rawValue) }),
      "groups": .list(account.groups.sorted().map { .text($0.rawValue) }),
    ])
  }

  static func event(_ event: AuditEvent) -> JSONValue {
    .members([
      "id": .text(event.id.text), "at": .text(event.at.exactText), "kind": .text(event.kind.rawValue),
      "code": .optional(event.code),
      "flow": .optional(event.flow), "flow_prefix": .optional(event.flowPrefix),
      "provider": .optional(event.provider?.rawValue),
      "account": .optional(event.account), "identifier": .optional(event.identifier),
      "address": .optional(event.address), "country": .optional(event.country),
      "asn": event.asn.map { .number($0) } ?? .null,
      "operator": .optional(event.detail["operator"]), "count": event.count.map { .number($0) } ?? .null,
      "detail": .object(
        event.detail.sorted { $0.key < $1.key }.map { JSONMember(name: $0.key, value: .text($0.value)) }),
    ])
  }
}
