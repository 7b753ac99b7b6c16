import MoongateCore
import MoongateSDK

/// policies/NAME.lua, flows/NAME.lua, routes.lua and accounts.lua, field by field.
extension TableShape {
  static let policy = TableShape(
    name: "Policy", summary: "One provider's codes, timers and limits. What is left out keeps the provider's default.",
    entries: [
      .optional("code", "moongate.Code", "what a code looks like"),
      .optional("timers", "moongate.Timers", "a table of timers"),
      .required("limits", "table<string, moongate.Limit>", "a table of limits"),
      .choice("unknown_account", UnknownAccount.self, nil, .conceal),
      .optional("message", "string", "the text with {code} in it"),
      .optional("send", "moongate.Decide", "a function of facts"),
      .optional("verify", "moongate.Decide", "a function of facts"),
      .optional(
        "reasons", "table<string, string>",
        "what people read of deny \"reason\", as in { country_not_served = \"We do not serve this country yet.\" }"),
    ])

  static let code = TableShape(
    name: "Code", summary: "What a code looks like and how long it lives.",
    entries: [
      .optional("length", "integer", "4 to 10 characters", .integer(6)),
      .choice("alphabet", CodeAlphabet.self, nil, .digits),
      .optional("ttl", "moongate.Duration", Field.durationKind, .text("10m")),
    ])

  static let timers = TableShape(
    name: "Timers", summary: "Waits between messages.",
    entries: [
      .optional(
        "resend_after", "moongate.Durations", "how long before the first resend, the second, …")
    ])

  static let limit = TableShape(
    name: "Limit", summary: "At most `max` events in any `window`, counted `per` key.",
    entries: [
      .choice("on", LimitAction.self, "`send`, `verify`, `begin` or `register`", isRequired: true),
      .choice("per", LimitKey.self, "what is counted by", isRequired: true),
      .required("max", "integer|moongate.Vary", "how many, from 1"),
      .optional("window", "moongate.Duration|moongate.Vary", Field.durationKind),
      .choice("counts", LimitCounts.self),
      .optional("lock", "moongate.Durations", "a duration, or a list that grows, such as { \"15m\", \"1h\" }"),
      .optional("disable", "boolean", "true or false", .flag(false)),
    ])

  static let flow = TableShape(
    name: "Flow", summary: "What a flow is for, and its steps in order.",
    entries: [
      .optional(
        "enabled", "boolean", "false: there is no such flow, not even one that comes with a provider", .flag(true)),
      .choice("purpose", FlowPurposeKind.self, "what completing the flow does", isRequired: false),
      .optional("provider", "string", "the provider whose factor the flow is about, such as \"pin\""),
      .choice("identifier", GivenIdentifierKind.self, "the kind of identifier that the flow is about"),
      .choice("account", AccountRule.self, "whose flow it is: \"existing\", \"new\" or \"any\"", isRequired: true),
      .required("steps", "(string|moongate.AnyOf|moongate.Fallback|moongate.Step)[]", "a list of steps"),
      .optional("lifetime", "moongate.Duration", Field.durationKind, .text("15m")),
      .optional("session", "moongate.Session", "how long a session lives"),
      .optional("next", "moongate.Next", "where a person goes when it is complete"),
    ])

  static let step = TableShape(
    name: "Step", summary: "A provider, or a choice of them, perhaps with a condition.",
    entries: [
      .optional("skippable", "boolean", "true or false", .flag(false)),
      .optional("when", "fun(f: moongate.FlowFacts): boolean?", "a function of facts"),
    ])

  static let session = TableShape(
    name: "Session", summary: "How long a session lives.",
    entries: [
      .optional("lifetime", "moongate.Duration", Field.durationKind, .text("12h")),
      .optional("idle", "moongate.Duration", Field.durationKind, .text("1h")),
    ])

  static let next = TableShape(
    name: "Next", summary: "Where a person goes when a flow is complete.",
    entries: [
      .optional("new", "string", "a path, such as \"/home\"", .text("/")),
      .optional("returning", "string", "a path, such as \"/home\"", .text("/")),
    ])

  static let route = TableShape(
    name: "Route", summary: "Requests of one kind: where they go and what they need. The first that matches wins.",
    entries: [
      .optional("host", "string", "a host, such as \"wallet.example.com\""),
      .required("path", "string", "a pattern, such as \"/pay/**\""),
      .optional("methods", "string[]", "a list, such as { \"GET\", \"POST\" }"),
      .required("to", "string|string[]", "an upstream, such as \"http://127.0.0.1:3000\""),
      .optional("allow", "boolean", "true: open to all", .flag(false)),
      .optional("flow", "string", "the name of a flow", .text("login")),
      .optional("require", "moongate.Requirement", "what a session must have"),
      .optional(
        "tokens", "boolean|moongate.RouteTokens",
        "the tokens of programs that it takes: true, { \"ci\" } or { personal = true }"),
      .optional("decide", "fun(f: moongate.RouteFacts): moongate.Decision", "a function of facts"),
      .optional("timeout", "moongate.Duration", Field.durationKind, .text("30s")),
      .optional("websocket", "boolean", "true or false", .flag(false)),
      .optional("headers", "table<string, string>", "headers to set, as in { [\"X-Tenant\"] = \"demo\" }"),
      .optional("body", "string", "a size, such as \"64MiB\""),
      .optional("body_rate", "string|false", BodyRateReader.kind),
    ])

  static let requirement = TableShape(
    name: "Requirement",
    summary:
      "What a session must have: a group, a passed provider or a verified address; a group together with either.",
    entries: [
      .optional("group", "string|moongate.AnyOf", "the name of a group, or any_of { … } of several"),
      .optional("passed", "string", "the name of a provider"),
      .optional("within", "moongate.Duration", Field.durationKind),
      .optional("email_verified", "boolean", "true or false"),
    ])

  static let routeTokens = TableShape(
    name: "RouteTokens",
    summary: "The tokens that a route takes: service tokens by their names, and those that people have made.",
    entries: [
      .optional("personal", "boolean", "true: the tokens that people have made on their account page", .flag(false))
    ])

  static let accounts = TableShape(
    name: "Accounts", summary: "What holds for every account, whichever flow opens its session.",
    entries: [
      .optional(
        "sign_in", "(string|moongate.AnyOf|moongate.SignInRequirement)[]",
        "a list of steps that every session of an existing account requires"),
      .optional(
        "offer", "(string|moongate.Offer)[]",
        "a list of factors that people are offered to set up after a sign-in on the pages"),
      .optional(
        "change_within", "moongate.Duration", "how recent a proof must be for a change of the account, such as \"10m\"",
        .text("10m")),
      .optional(
        "recovery_delay", "moongate.Duration",
        "how long a new number or address cannot reset anything, such as \"24h\"", .text("24h")),
      .optional(
        "unverified_lifetime", "moongate.Duration",
        "how long an account without a verified identifier is kept unused, such as \"30d\"",
        .text("30d")),
      .optional(
        "groups", "table<string, moongate.Members|fun(f: moongate.EntitlementFacts): boolean?>",
        "a table of groups, as in { ops = members() }"),
      .optional(
        "claims", "table<string, fun(f: moongate.EntitlementFacts): string|number|boolean|nil>",
        "a table of functions, as in { plan = function(f) return \"new\" end }"),
    ])

  static let signInRequirement = TableShape(
    name: "SignInRequirement",
    summary: "A provider, or a choice of them, that every session requires, perhaps with a condition.",
    entries: [
      .optional("when", "fun(f: moongate.FlowFacts): boolean?", "a function of facts"),
      .optional("enroll", "boolean", "true: an account that lacks the factor sets it up on the way", .flag(false)),
    ])

  static let offer = TableShape(
    name: "Offer", summary: "A provider whose factor people are offered to set up, how often, and perhaps a condition.",
    entries: [
      .optional(
        "every", "moongate.Duration", "the least time between two offers to one account, such as \"30d\"", .text("30d")),
      .optional("when", "fun(f: moongate.FlowFacts): boolean?", "a function of facts"),
    ])

  /// Every shape that does not depend on the providers of the program.
  static let all: [TableShape] = [
    .gateway, .admin, .adminToken, .auditFile, .auditSyslog, .auditWebhook, .otlp, .gate, .tls, .brand,
    .connectionLimits, .addressLimits,
    .flowLimits,
    .program,
    .outbox, .smtp, .webhook, .twilio, .policy, .code, .timers, .limit, .flow, .step, .session, .next, .route,
    .routeTokens, .requirement, .accounts,
    .signInRequirement, .offer, .guarantee, .guaranteeAccount,
    .guaranteeClient, .guaranteeSession, .caseAccount, .caseClient, .caseToken, .caseSend, .caseWrong, .caseWait,
    .caseRequest, .caseExpect,
  ]
}
