import MoongateCore
import MoongateSDK

/// The JSON of flows, accounts and sessions. Absent values are null, and times are ISO 8601 in UTC.
extension JSONValue {
  static func flow(_ view: FlowView) -> JSONValue {
    let device = view.deviceToken.map { [JSONMember(name: "device_token", value: .text($0.reveal()))] } ?? []
    let remember = view.isRemembered.map { [JSONMember(name: "remember", value: .flag($0))] } ?? []
    let due = view.changeDue.map { [JSONMember(name: "change_due", value: .text($0.rawValue))] } ?? []
    let exposed =
      view.exposed.isEmpty
      ? [] : [JSONMember(name: "exposed", value: .list(view.exposed.map { .text($0.rawValue) }))]
    let members: KeyValuePairs<String, JSONValue> = [
      "id": .text(view.id.secret.reveal()), "flow": .text(view.flow), "status": .text(view.status.rawValue),
      "expires_at": .text(view.expiresAt.text),
      "choices": .list(view.choices.map { .text($0.rawValue) }), "step": view.step.map(step) ?? .null,
      "passed": passed(view.passed),
      "account": view.account.map(account) ?? .null, "session": view.session.map(session) ?? .null,
      "next": .optional(view.next),
    ]
    return .object(members.map { JSONMember(name: $0.key, value: $0.value) } + remember + due + exposed + device)
  }

  package static func account(_ account: AccountView) -> JSONValue {
    let name = account.name.map { [JSONMember(name: "name", value: .text($0))] } ?? []
    let members: KeyValuePairs<String, JSONValue> = [
      "id": .text(account.id), "phone": .optional(account.phone), "email": .optional(account.email),
      "first_name": .optional(account.firstName),
      "last_name": .optional(account.lastName), "is_phone_verified": .flag(account.isPhoneVerified),
      "is_email_verified": .flag(account.isEmailVerified), "has_pin": .flag(account.hasPIN),
      "is_new_user": .flag(account.isNewUser),
    ]
    return .object(members.map { JSONMember(name: $0.key, value: $0.value) } + name)
  }

  /// Contains the token only in the answer that created the session.
  static func session(_ session: SessionView) -> JSONValue {
    let token = session.token.map { [JSONMember(name: "token", value: .text($0.reveal()))] } ?? []
    return .object(
      token + [
        JSONMember(name: "expires_at", value: .text(session.expiresAt.text)),
        JSONMember(name: "aal", value: .number(session.aal)),
        JSONMember(name: "passed", value: passed(session.passed)),
      ])
  }

  /// A session in a list of an account's sessions (`Components.listedSession`).
  /// - Parameter isCurrent: whether the request belongs to the session; nil where the list does not say it.
  static func listed(_ session: Session, isCurrent: Bool? = nil) -> JSONValue {
    let current = isCurrent.map { [JSONMember(name: "current", value: .flag($0))] } ?? []
    let members: KeyValuePairs<String, JSONValue> = [
      "id": .text(session.id), "created_at": .text(session.createdAt.text),
      "last_seen_at": .text(session.lastSeenAt.text), "expires_at": .text(session.deadline.text),
      "aal": .number(session.assuranceLevel), "passed": passed(session.counted),
      "user_agent": .optional(session.userAgent), "address": .optional(session.address),
      "last_address": .optional(session.lastAddress),
    ]
    return .object(members.map { JSONMember(name: $0.key, value: $0.value) } + current)
  }

  static func passed(_ steps: [PassedStep]) -> JSONValue {
    .list(steps.map { .members(["provider": .text($0.provider.rawValue), "at": .text($0.at.text)]) })
  }

  private static func step(_ step: StepView) -> JSONValue {
    let locked = step.lockedUntil.map { [JSONMember(name: "locked_until", value: .text($0.text))] } ?? []
    let members: KeyValuePairs<String, JSONValue> = [
      "provider": .text(step.provider.rawValue), "fields": .list(step.fields.map(field) + choice(of: step.accounts)),
      "sent_to": .optional(step.sentTo),
      "expires_at": .optional(step.expiresAt?.text), "resend_at": .optional(step.resendAt?.text),
      "attempts_left": .optional(step.attemptsLeft),
      "resends_left": .optional(step.resendsLeft), "skippable": .flag(step.isSkippable),
      "redirect_to": .optional(step.redirectTo),
    ]
    let wait =
      step.retryAfter.map { [JSONMember(name: "retry_after", value: .number($0 == .zero ? 0 : $0.retryAfterSeconds))] }
      ?? []
    let fallbacks =
      step.fallbacks.isEmpty
      ? [] : [JSONMember(name: "fallbacks", value: .list(step.fallbacks.map { .text($0.rawValue) }))]
    let shown = step.shown.isEmpty ? [] : [JSONMember(name: "show", value: .list(step.shown.map(shown)))]
    return .object(members.map { JSONMember(name: $0.key, value: $0.value) } + locked + wait + shown + fallbacks)
  }

  /// The items to show to the user next to the fields.
  private static func shown(_ shown: Shown) -> JSONValue {
    switch shown {
    case .text(let text): .members(["kind": .text("text"), "text": .text(text)])
    case .secret(let text): .members(["kind": .text("secret"), "text": .text(text)])
    case .qr(let text): .members(["kind": .text("qr"), "text": .text(text)])
    case .list(let lines): .members(["kind": .text("list"), "items": .list(lines.map { .text($0) })])
    case .ceremony(let call, let options):
      .members([
        "kind": .text("ceremony"), "call": .text(call.rawValue),
        "options": (try? JSONReader.read(Array(options.utf8))) ?? .members([:]),
      ])
    }
  }

  /// The field that selects one of several accounts; empty if there is no choice.
  private static func choice(of accounts: [AccountOption]) -> [JSONValue] {
    if accounts.isEmpty { return [] }
    let choices = accounts.map { option -> JSONValue in
      .members([
        "value": .text(option.value), "created_at": .text(option.createdAt.text),
        "last_used_at": .text(option.lastUsedAt.text),
      ])
    }
    return [.members(["name": .text("account"), "kind": .text("choice"), "choices": .list(choices)])]
  }

  private static func field(_ field: InputField) -> JSONValue {
    let length = field.length.map { [JSONMember(name: "length", value: .number($0))] } ?? []
    let choices = field.choices.map { choices in
      [
        JSONMember(
          name: "choices", value: .list(choices.map { .members(["value": .text($0.value), "label": .text($0.label)]) }))
      ]
    }
    return .object(
      [JSONMember(name: "name", value: .text(field.name)), JSONMember(name: "kind", value: .text(field.kind.rawValue))]
        + length + (choices ?? []))
  }
}
