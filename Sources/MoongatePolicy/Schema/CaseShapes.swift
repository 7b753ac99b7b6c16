import MoongateCore

/// The tables of tests/NAME.lua.
extension TableShape {
  static let caseAccount = TableShape(
    name: "CaseAccount", summary: "The account that has the identifiers given so far.",
    entries: [
      .optional("exists", "boolean", "whether the account exists", .flag(true)),
      .optional("age", "moongate.Duration", Entry.durationKind),
      .optional("idle", "moongate.Duration", Entry.durationKind),
      .optional("phone", "string", "an additional phone number of the account"),
      .optional("email", "string", "an additional email address of the account"),
      .optional("phone_verified", "boolean", "true or false", .flag(true)),
      .optional("email_verified", "boolean", "true or false", .flag(true)),
      .optional("has_pin", "boolean", "true or false", .flag(false)),
      .optional("pin", "string", "its PIN"),
      .optional("password", "string", "its password"),
      .optional(
        "factors", "table<string, string>",
        "its secrets at other providers, as in { door_pin = \"739154\" }"),
      .optional("locked", "boolean", "whether an operator locked it", .flag(false)),
    ])

  static let caseClient = TableShape(
    name: "CaseClient", summary: "The client that sends the following requests.",
    entries: [
      .optional("ip", "string", "an address, such as \"203.0.113.7\""),
      .optional("country", "string", "the country of the address in two letters, as f.client.country"),
      .optional("asn", "integer", "the number of its autonomous system, as f.client.asn"),
      .optional("user_agent", "string", "the User-Agent header"),
      .optional(
        "device", "string",
        "a name for the device, which keeps its cookies between requests; without it, every request comes from a new device"
      ),
      .optional("known", "boolean", "whether the device has signed in to the account before"),
      .optional("remember", "boolean", "whether the user chooses to stay signed in, where a flow offers that"),
    ])

  static let caseToken = TableShape(
    name: "CaseToken", summary: "The service token that requests carry.",
    entries: [
      .required("name", "string", "its name, as in a route's `tokens`, such as \"ci\""),
      .optional("groups", "string[]", "its groups, as in { \"ops\" }"),
    ])

  static let caseInvitation = TableShape(
    name: "CaseInvitation", summary: "An invitation, as `moongate invite create` makes it.",
    entries: [
      .optional("to", "string", "the email address or phone number that it is for; without it, it is for anybody"),
      .optional("groups", "string[]", "the groups of the new account, as in { \"ops\" }"),
    ])

  static let caseSend = TableShape(
    name: "CaseSend", summary: "Options for sending a code.",
    entries: [.optional("until_sent", "boolean", "true: advances the clock until a code is sent", .flag(false))])

  static let caseWrong = TableShape(
    name: "CaseWrong", summary: "The number of wrong codes to enter.",
    entries: [
      .optional("until_locked", "boolean", "true: enters wrong codes until a lock applies", .flag(false)),
      .optional("times", "integer", "the number of wrong codes"),
    ])

  static let caseWait = TableShape(
    name: "CaseWait", summary: "The event to wait for: one of these fields.",
    entries: [
      .optional("until_unlocked", "boolean", "true: until the lock ends", .flag(false)),
      .optional("until_resend", "boolean", "true: until another code can be requested", .flag(false)),
      .optional("until_expired", "boolean", "true: until the code expires", .flag(false)),
    ])

  static let caseExpect = TableShape(
    name: "CaseExpect", summary: "The expected answer to the previous action.",
    entries: [
      .optional(
        "status", "integer|\"pending\"|\"complete\"|\"failed\"|\"refused\"", "the HTTP status, or the state of the flow"
      ),
      .optional("code", "string", "the error code, such as \"too_many_attempts\""),
      .optional("retry_after", "moongate.Duration", Entry.durationKind),
      .optional("attempts_left", "integer", "attempts remaining before a lock"),
      .optional("resends_left", "integer", "resends remaining"),
      .optional("field", "string", "the invalid field, such as \"phone\""),
      .optional("messages", "integer", "the number of messages sent so far"),
      .optional("step", "string", "the provider of the current step"),
      .optional("locked", "boolean", "whether a lock applies"),
      .optional("waiting", "boolean", "whether the step waits for an approval on another device"),
      .optional("next", "string", "the path after the flow, such as \"/home\""),
      .optional(
        "claims", "table<string, any>", "claims that the app gets, among others, as in { role = \"Admin\" }"),
    ])
}
