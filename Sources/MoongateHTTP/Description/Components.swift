import MoongateCore

/// `components/schemas`: the schemas that several calls share.
package enum Components {
  static let schemas: KeyValuePairs<String, JSONValue> = [
    "Flow": Schema.answer(
      [
        "id": Schema.text, "flow": Schema.text, "status": Schema.oneOf(["pending", "complete", "failed"]),
        "expires_at": Schema.moment,
        "choices": Schema.list(of: Schema.text), "step": Schema.nullable(Schema.named("Step")),
        "passed": Schema.list(of: Schema.named("PassedStep")), "account": Schema.nullable(Schema.named("Account")),
        "session": Schema.nullable(Schema.named("Session")), "next": Schema.optionalText,
      ],
      perhaps: [
        "remember": Schema.flag, "device_token": Schema.text,
        "change_due": Schema.oneOf(DueChange.allCases.map(\.rawValue)), "exposed": Schema.list(of: Schema.text),
      ]),
    "Step": Schema.answer(
      [
        "provider": Schema.text, "fields": Schema.list(of: Schema.named("Field")), "sent_to": Schema.optionalText,
        "expires_at": Schema.nullable(Schema.moment), "resend_at": Schema.nullable(Schema.moment),
        "attempts_left": Schema.nullable(Schema.count),
        "resends_left": Schema.nullable(Schema.count), "skippable": Schema.flag, "redirect_to": Schema.optionalText,
      ],
      perhaps: [
        "locked_until": Schema.moment, "retry_after": Schema.count, "show": Schema.list(of: Schema.named("Shown")),
        "fallbacks": Schema.list(of: Schema.text),
      ]),
    "Shown": Schema.answer(
      ["kind": Schema.oneOf(["text", "secret", "qr", "list", "ceremony"])],
      perhaps: [
        "text": Schema.text, "items": Schema.list(of: Schema.text), "call": Schema.oneOf(["create", "get"]),
        "options": Schema.anyObject,
      ]),
    "Field": Schema.answer(
      [
        "name": Schema.text,
        "kind": Schema.oneOf(["digits", "text", "phone", "email", "password", "region", "json", "choice"]),
      ],
      perhaps: [
        "length": Schema.count,
        "choices": Schema.list(of: Schema.anyOf([Schema.named("AccountOption"), Schema.named("InputChoice")])),
      ]),
    "InputChoice": Schema.answer(["value": Schema.text, "label": Schema.text]),
    "PassedStep": Schema.answer(["provider": Schema.text, "at": Schema.moment]),
    "Account": Schema.answer(account, perhaps: ["name": Schema.text]),
    "Session": Schema.answer(
      ["expires_at": Schema.moment, "aal": Schema.count, "passed": Schema.list(of: Schema.named("PassedStep"))],
      perhaps: ["token": Schema.text]),
    "SessionEntry": Schema.answer(listedSession, and: ["current": Schema.flag]),
    "DeviceEntry": Schema.answer(device, and: ["current": Schema.flag]),
    "Ignored": Schema.ignored,
    "Problem": Schema.answer(
      [
        "type": Schema.text, "title": Schema.text, "status": Schema.number, "detail": Schema.text, "code": Schema.text,
        "decision_id": Schema.text,
      ],
      perhaps: [
        "attempts_left": Schema.count, "retry_after": Schema.count, "resend_at": Schema.moment, "field": Schema.text,
        "provider": Schema.text,
        "flow": Schema.text, "flow_id": Schema.text, "reason": Schema.text, "permanent": Schema.flag,
        "change_due": Schema.oneOf(DueChange.allCases.map(\.rawValue)),
      ]),
  ]

  /// An account, as its user sees it.
  package static let account: KeyValuePairs<String, JSONValue> = [
    "id": Schema.text, "phone": Schema.optionalText, "email": Schema.optionalText, "first_name": Schema.optionalText,
    "last_name": Schema.optionalText, "is_phone_verified": Schema.flag, "is_email_verified": Schema.flag,
    "has_pin": Schema.flag, "is_new_user": Schema.flag,
  ]

  /// A trusted device.
  static let device: KeyValuePairs<String, JSONValue> = [
    "id": Schema.text, "created_at": Schema.moment, "last_seen_at": Schema.moment, "user_agent": Schema.optionalText,
  ]

  /// An app that the user has signed in to.
  static let connectedApp: KeyValuePairs<String, JSONValue> = [
    "app": Schema.text, "scopes": Schema.list(of: Schema.text), "created_at": Schema.moment,
    "last_used_at": Schema.moment,
  ]

  /// A session in a list of an account's sessions.
  static let listedSession: KeyValuePairs<String, JSONValue> = [
    "id": Schema.text, "created_at": Schema.moment, "last_seen_at": Schema.moment, "expires_at": Schema.moment,
    "aal": Schema.count, "passed": Schema.list(of: Schema.named("PassedStep")), "user_agent": Schema.optionalText,
    "address": Schema.optionalText, "last_address": Schema.optionalText,
  ]
}
