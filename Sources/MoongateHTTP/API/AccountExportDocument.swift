import MoongateCore
import MoongateSDK

/// The JSON of an account export. Absent values are null, and times are ISO 8601 in UTC.
extension JSONValue {
  static func export(_ export: AccountExport) -> JSONValue {
    let account = export.account
    return .members([
      "account": .members([
        "id": .text(account.id), "first_name": .optional(account.firstName), "last_name": .optional(account.lastName),
        "created_at": .text(account.createdAt.text), "last_seen_at": .text(account.lastSeenAt.text),
        "language": .optional(account.language),
      ]),
      "identifiers": .list(account.identifiers.map(identifier)), "factors": .list(export.factors.map(factor)),
      "groups": .list(
        export.groups.map { .members(["group": .text($0.group.rawValue), "added_at": .text($0.addedAt.text)]) }),
      "sessions": .list(export.sessions.map { .listed($0) }), "devices": .list(export.devices.map { .device($0) }),
      "tokens": .list(export.tokens.map { .personal($0) }), "apps": .list(export.apps.map { .connected($0) }),
      "events": .list(export.events.map(exportedEvent)),
    ])
  }

  private static func identifier(_ held: HeldIdentifier) -> JSONValue {
    .members([
      "kind": .text(held.identifier.kind.rawValue), "value": .text(held.identifier.value),
      "verified_at": .optional(held.verifiedAt?.text),
      "attributes": .object(
        held.identifier.attributes.sorted { $0.key < $1.key }.map { JSONMember(name: $0.key, value: .text($0.value)) }),
      "groups": .list(held.identifier.groups.map { .text($0) }),
    ])
  }

  private static func factor(_ factor: StoredFactor) -> JSONValue {
    .members([
      "provider": .text(factor.provider.rawValue), "added_at": .text(factor.addedAt.text),
      "changed_at": .text(factor.changedAt.text),
    ])
  }

  /// An event for its user, without details for operators such as the line of a policy.
  private static func exportedEvent(_ event: AuditEvent) -> JSONValue {
    .members([
      "id": .text(event.id.text), "at": .text(event.at.text), "kind": .text(event.kind.rawValue),
      "flow": .optional(event.flow),
      "provider": .optional(event.provider?.rawValue), "address": .optional(event.address),
      "code": .optional(event.code),
      "session": .optional(event.detail["session"]), "limit": .optional(event.detail["limit"]),
    ])
  }
}
