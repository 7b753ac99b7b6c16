import MoongateCore

/// guarantees.lua, field by field.
extension TableShape {
  static let guarantee = TableShape(
    name: "Guarantee",
    summary: "What is always true: of the sessions of an account, or of every session that passes a route.",
    entries: [
      .optional("account", "moongate.GuaranteeAccount", "which accounts it is about; all where it is left out"),
      .optional("client", "moongate.GuaranteeClient", "which devices it is about; all where it is left out"),
      .optional("session", "moongate.GuaranteeSession", "what a session has passed when it begins"),
      .optional("route", "string", "a pattern of paths, such as \"/admin/**\""),
      .optional("host", "string", "a host, such as \"admin.example.com\"; with `route`"),
      .optional("passed", "string|moongate.AnyOf", "a provider that a session has passed; with `route`"),
      .optional("factors", "integer", "how many different providers a session has passed, from 1; with `route`"),
      .optional("within", "moongate.Duration", "how long ago at most, such as \"5m\"; with `passed`"),
      .optional(
        "group", "string|moongate.AnyOf", "a group that every requester is in, or any_of { … } of several; with `route`"
      ),
    ])

  static let guaranteeAccount = TableShape(
    name: "GuaranteeAccount",
    summary: "Facts of the account as the flow finds it, spelled as functions read them in f.account.",
    entries: [
      .optional("exists", "boolean", "true or false"),
      .optional("has_pin", "boolean", "true or false"),
      .optional("has_email", "boolean", "true or false"),
      .optional("email_verified", "boolean", "true or false"),
      .optional("phone_verified", "boolean", "true or false"),
      .optional(
        "factors", "table<string, boolean>", "providers that keep a secret of the account, as in { totp = true }"),
    ])

  static let guaranteeClient = TableShape(
    name: "GuaranteeClient", summary: "Facts of the device, spelled as functions read them in f.client.",
    entries: [
      .optional("new_device", "boolean", "true or false"),
      .optional("network_changed", "boolean", "true or false"),
    ])

  static let guaranteeSession = TableShape(
    name: "GuaranteeSession", summary: "What a session has passed when it begins.",
    entries: [
      .optional("passed", "string|moongate.AnyOf", "the name of a provider, or any_of { … }"),
      .optional("factors", "integer", "how many different providers, from 1"),
    ])
}
