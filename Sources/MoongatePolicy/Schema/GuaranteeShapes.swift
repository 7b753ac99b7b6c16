import MoongateCore

/// The tables of guarantees.lua.
extension TableShape {
  static let guarantee = TableShape(
    name: "Guarantee",
    summary:
      "A property that must always hold: for the sessions of matching accounts, or for every session that a route or an app accepts.",
    entries: [
      .optional("account", "moongate.GuaranteeAccount", "the accounts that the guarantee covers; all by default"),
      .optional("client", "moongate.GuaranteeClient", "the devices that the guarantee covers; all by default"),
      .optional("session", "moongate.GuaranteeSession", "what a session must have passed when it begins"),
      .optional("route", "string", "a pattern of paths, such as \"/admin/**\""),
      .optional("host", "string", "a host, such as \"admin.example.com\"; with `route`"),
      .optional("app", "string", "the client id of an app, such as \"grafana\""),
      .optional(
        "passed", "string|moongate.AnyOf", "a provider that the session must have passed; with `route` or `app`"),
      .optional(
        "factors", "integer",
        "the least number of different providers that the session must have passed, from 1; with `route` or `app`"),
      .optional(
        "within", "moongate.Duration", "the maximum time since the provider was passed, such as \"5m\"; with `passed`"),
      .optional(
        "group", "string|moongate.AnyOf",
        "a group that every account with access belongs to, or any_of { … } of several; with `route` or `app`"
      ),
    ])

  static let guaranteeAccount = TableShape(
    name: "GuaranteeAccount",
    summary: "Facts of the account when the flow begins, named as in f.account.",
    entries: [
      .optional("exists", "boolean", "true or false"),
      .optional("has_pin", "boolean", "true or false"),
      .optional("has_email", "boolean", "true or false"),
      .optional("email_verified", "boolean", "true or false"),
      .optional("phone_verified", "boolean", "true or false"),
      .optional(
        "factors", "table<string, boolean>", "providers that store a secret of the account, as in { totp = true }"),
    ])

  static let guaranteeClient = TableShape(
    name: "GuaranteeClient", summary: "Facts of the device, named as in f.client.",
    entries: [
      .optional("new_device", "boolean", "true or false"),
      .optional("network_changed", "boolean", "true or false"),
    ])

  static let guaranteeSession = TableShape(
    name: "GuaranteeSession", summary: "What a session must have passed when it begins.",
    entries: [
      .optional("passed", "string|moongate.AnyOf", "the name of a provider, or any_of { … }"),
      .optional("factors", "integer", "the least number of different providers, from 1"),
    ])
}
