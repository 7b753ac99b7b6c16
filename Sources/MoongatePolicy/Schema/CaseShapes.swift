import MoongateCore

/// tests/NAME.lua, field by field.
extension TableShape {
  static let caseAccount = TableShape(
    name: "CaseAccount", summary: "Whether there is an account of the names said so far, and what it has.",
    entries: [
      .optional("exists", "boolean", "whether there is one", .flag(true)),
      .optional("age", "moongate.Duration", Field.durationKind),
      .optional("idle", "moongate.Duration", Field.durationKind),
      .optional("phone", "string", "a phone number that it holds besides"),
      .optional("email", "string", "an email address that it holds besides"),
      .optional("phone_verified", "boolean", "true or false", .flag(true)),
      .optional("email_verified", "boolean", "true or false", .flag(true)),
      .optional("has_pin", "boolean", "true or false", .flag(false)),
      .optional("pin", "string", "the PIN that it has"),
      .optional("password", "string", "the password that it has"),
      .optional(
        "factors", "table<string, string>",
        "the secrets that it has at other providers, as in { door_pin = \"739154\" }"),
      .optional("locked", "boolean", "true: an operator locked it", .flag(false)),
    ])

  static let caseClient = TableShape(
    name: "CaseClient", summary: "Where requests come from, from here on.",
    entries: [
      .optional("ip", "string", "an address, such as \"203.0.113.7\""),
      .optional("user_agent", "string", "what the browser calls itself"),
      .optional(
        "device", "string",
        "a name for the device, which remembers where it has signed in; without one every request is from a new device"),
      .optional("known", "boolean", "true: a device that has signed in to the account before; false: a new one"),
    ])

  static let caseToken = TableShape(
    name: "CaseToken", summary: "The service token of a program that requests come from.",
    entries: [
      .required("name", "string", "its name, as a route's `tokens` says it, such as \"ci\""),
      .optional("groups", "string[]", "the groups that it is in, as in { \"ops\" }"),
    ])

  static let caseSend = TableShape(
    name: "CaseSend", summary: "How a code is asked for.",
    entries: [.optional("until_sent", "boolean", "true: wait until a code goes out", .flag(false))])

  static let caseWrong = TableShape(
    name: "CaseWrong", summary: "How many wrong codes are entered.",
    entries: [
      .optional("until_locked", "boolean", "true: until a lock stands", .flag(false)),
      .optional("times", "integer", "how many"),
    ])

  static let caseWait = TableShape(
    name: "CaseWait", summary: "What is waited for: one of these.",
    entries: [
      .optional("until_unlocked", "boolean", "true: until the lock is over", .flag(false)),
      .optional("until_resend", "boolean", "true: until another code may be asked for", .flag(false)),
      .optional("until_expired", "boolean", "true: until the code is dead", .flag(false)),
    ])

  static let caseExpect = TableShape(
    name: "CaseExpect", summary: "What the answer before it must be.",
    entries: [
      .optional(
        "status", "integer|\"pending\"|\"complete\"|\"failed\"|\"refused\"", "an HTTP status, or how the flow stands"),
      .optional("code", "string", "the code of a refusal, such as \"too_many_attempts\""),
      .optional("retry_after", "moongate.Duration", Field.durationKind),
      .optional("attempts_left", "integer", "how many wrong codes before a lock"),
      .optional("resends_left", "integer", "how many more codes may be asked for"),
      .optional("field", "string", "the field that is wrong, such as \"phone\""),
      .optional("messages", "integer", "how many messages went out so far"),
      .optional("step", "string", "the provider that is due"),
      .optional("locked", "boolean", "whether a lock stands"),
      .optional("waiting", "boolean", "whether the step waits for an approval elsewhere"),
      .optional("next", "string", "where the person goes, such as \"/home\""),
    ])
}
