import MoongateCore
import MoongateSDK

/// The tables of policies/NAME.lua, flows/NAME.lua, accounts.lua and apps.lua.
extension TableShape {
  static let policy = TableShape(
    name: "Policy",
    summary: "The codes, timers, limits and decisions of one provider. Omitted fields keep the provider's defaults.",
    entries: [
      .optional("code", "moongate.Code", "the format and lifetime of codes"),
      .optional("timers", "moongate.Timers", "a table of timers"),
      .required("limits", "table<string, moongate.Limit>", "a table of limits"),
      .choice("unknown_account", UnknownAccount.self, nil, .conceal),
      .optional("message", "string", "the text with {code} in it"),
      .optional("send", "moongate.Decide", "a function of facts"),
      .optional("verify", "moongate.Decide", "a function of facts"),
      .optional(
        "identity", "fun(f: moongate.IdentityFacts): moongate.MappedIdentity|moongate.Decision",
        "a function of f.claims"),
      .optional(
        "reasons", "table<string, string>",
        "messages that users see for deny \"reason\", as in { country_not_served = \"We do not serve this country yet.\" }"
      ),
    ])

  static let mappedIdentity = TableShape(
    name: "MappedIdentity", summary: "What the function `identity` of a policy returns.",
    entries: [
      .optional("email", "string", "the email address"),
      .optional("email_verified", "boolean", "whether the site has verified it"),
      .optional("first_name", "string", "the first name"),
      .optional("last_name", "string", "the last name"),
      .optional("groups", "string[]|table<string, boolean>", "the groups, for f.account.identities.NAME.groups"),
      .optional(
        "data", "table<string, string|number|boolean>", "texts, for f.account.identities.NAME.data"),
    ])

  static let code = TableShape(
    name: "Code", summary: "The format and lifetime of codes.",
    entries: [
      .optional("length", "integer", "4 to 10 characters", .integer(6)),
      .choice("alphabet", CodeAlphabet.self, nil, .digits),
      .optional("ttl", "moongate.Duration", Entry.durationKind, .text("10m")),
    ])

  static let timers = TableShape(
    name: "Timers", summary: "Waiting times between messages.",
    entries: [
      .optional(
        "resend_after", "moongate.Durations", "how long to wait before the first resend, the second, …")
    ])

  static let limit = TableShape(
    name: "Limit", summary: "A rate limit: at most `max` events in any `window`, counted `per` key.",
    entries: [
      .choice("on", LimitAction.self, "`send`, `verify`, `begin` or `register`", isRequired: true),
      .choice("per", LimitKey.self, "the key of the counter", isRequired: true),
      .required("max", "integer|moongate.Vary", "a whole number, from 1"),
      .optional("window", "moongate.Duration|moongate.Vary", Entry.durationKind),
      .choice("counts", LimitCounts.self),
      .optional("lock", "moongate.Durations", "a duration, or a list that grows, such as { \"15m\", \"1h\" }"),
      .optional("disable", "boolean", "true or false", .flag(false)),
    ])

  static let flow = TableShape(
    name: "Flow", summary: "The purpose and the steps of a flow.",
    entries: [
      .optional(
        "enabled", "boolean", "false disables the flow, including a flow of this name that a provider ships",
        .flag(true)),
      .choice("purpose", FlowPurposeKind.self, "what completing the flow does", isRequired: false),
      .optional("provider", "string", "the provider whose factor the flow manages, such as \"pin\""),
      .choice("identifier", GivenIdentifierKind.self, "the kind of identifier"),
      .choice(
        "account", AccountRule.self, "which accounts the flow accepts: \"existing\", \"new\" or \"any\"",
        isRequired: true),
      .optional(
        "registers", "string[]",
        "with account = \"existing\": the names of the providers by which the flow creates accounts all the same"
      ),
      .required("steps", "(string|moongate.AnyOf|moongate.Fallback|moongate.Step)[]", "a list of steps"),
      .optional("lifetime", "moongate.Duration", Entry.durationKind, .text("15m")),
      .optional("session", "moongate.Session", "the lifetime of sessions"),
      .optional("next", "moongate.Next", "the path to open when the flow is complete"),
    ])

  static let step = TableShape(
    name: "Step", summary: "A step: a provider or a choice of providers, with an optional condition.",
    items: "string|moongate.AnyOf|moongate.Fallback the provider",
    entries: [
      .optional("skippable", "boolean", "true or false", .flag(false)),
      .optional("when", "fun(f: moongate.FlowFacts): boolean?", "a function of facts"),
    ])

  static let session = TableShape(
    name: "Session", summary: "The lifetime of sessions.",
    entries: [
      .optional("lifetime", "moongate.Duration", Entry.durationKind, .text("12h")),
      .optional("idle", "moongate.Duration", Entry.durationKind, .text("1h")),
      .optional("remember", "moongate.Remember", "the lifetime of sessions of users who stay signed in"),
    ])

  static let remember = TableShape(
    name: "Remember", summary: "The lifetime of sessions of users who choose to stay signed in.",
    entries: [
      .required("lifetime", "moongate.Duration", Entry.durationKind),
      .required("idle", "moongate.Duration", Entry.durationKind),
    ])

  static let next = TableShape(
    name: "Next", summary: "The path to open when a flow is complete.",
    entries: [
      .optional("new", "string", "a path, such as \"/home\"", .text("/")),
      .optional("returning", "string", "a path, such as \"/home\"", .text("/")),
    ])

  static let app = TableShape(
    name: "App",
    summary: "An app that signs its users in with OpenID Connect, or by a flow of the API. Its key is its client id.",
    entries: [
      .optional("name", "string", "the name that users read; without it, the client id"),
      .optional(
        "secret", "moongate.Secret", "the secret of an app that runs on a server, as in file \"secrets/grafana\""),
      .optional(
        "keys", "string",
        "instead of a secret: the address of its public keys, by which it signs its requests (private_key_jwt)"),
      .optional("public", "boolean", "instead of a secret: true for an app on devices of users, which can keep none"),
      .optional(
        "redirect_uris", "string[]",
        "the addresses that receive codes, compared exactly, as in { \"https://app.example.com/in\" }"),
      .optional("sign_out_uris", "string[]", "the addresses to which a sign-out at the app may return"),
      .optional("sign_out_notice", "string", "the address that is told when a session ends (Back-Channel Logout)"),
      .optional("require", "moongate.AppRequirement", "the requirements on the session, judged again at each refresh"),
      .optional("decide", "fun(f: moongate.RouteFacts): moongate.Decision", "a function of facts, as in routes.lua"),
      .optional(
        "scopes", "string[]",
        "the scopes that it may ask for: by default `openid`, `profile`, `email` and `groups`; more are `phone`, `offline_access` and names of your own"
      ),
      .optional(
        "claims", "fun(f: moongate.RouteFacts): table<string, any>",
        "a function of facts that returns further claims, as in { role = \"Admin\" }"),
      .choice(
        "consent", App.Consent.self,
        "when a page asks the user before a code leaves: `never` (by default, with a secret or keys), `once` (by default, if it is public) or `always`"
      ),
      .optional(
        "grants", Entry.list(of: GrantType.allCases.map(\.word)),
        "how it may get tokens; by default `authorization_code` and `refresh_token`"),
      .choice("signing", SigningAlgorithm.self, "the algorithm that signs its ID tokens", .rs256),
      .choice(
        "access_token", AppAccessTokenWord.self,
        "the form of its access tokens: `opaque`, or `jwt` (RFC 9068) for the APIs in `audience`", .opaque),
      .optional(
        "audience", "string[]",
        "the APIs that accept its access tokens, as in { \"https://api.example.com\" }; with `jwt`"),
      .optional("lifetimes", "moongate.AppLifetimes", "the lifetimes of its tokens"),
      .choice("pkce", AppPKCE.self, "whether it may omit PKCE: `optional` only with a secret or keys", .required),
      .choice(
        "subject", AppSubject.self,
        "the `sub` of a user: `public` for the id of the account, or `pairwise` for an id that only apps on the same host share",
        .public),
    ])

  static let appRequirement = TableShape(
    name: "AppRequirement",
    summary: "Requirements on the session of an app: a group, a step, and a number of factors.",
    entries: [
      .optional(
        "group", "string|moongate.AnyOf", "the group that the account must belong to, or any_of { … } of several"),
      .optional("passed", "string", "the provider that the session must have passed"),
      .optional("within", "moongate.Duration", "the maximum time since the provider was passed, such as \"15m\""),
      .optional("email_verified", "boolean", "whether the account must have a verified email address"),
      .optional("factors", "integer", "how many factors the session must have proved; one step can count as two"),
    ])

  static let appLifetimes = TableShape(
    name: "AppLifetimes",
    summary: "The lifetimes of an app's tokens, from \"1s\". Signed tokens live at most \"1d\".",
    entries: [
      .optional("id_token", "moongate.Duration", "the lifetime of ID tokens", .text("5m")),
      .optional("access_token", "moongate.Duration", "the lifetime of access tokens", .text("10m")),
      .optional(
        "refresh_token", "moongate.Duration", "how long a refresh token stays valid without being used", .text("30d")),
    ])

  static let accounts = TableShape(
    name: "Accounts", summary: "Rules for all accounts and sessions, independent of the flow.",
    entries: [
      .optional(
        "registration", "\"open\"|\"invited\"|\"closed\"|moongate.Registration",
        "who can create an account, by any flow and provider: everybody, users with an invitation, or nobody",
        .text(RegistrationRule.Word.open.rawValue)),
      .optional(
        "admit", "fun(f: moongate.FlowFacts): moongate.Decision",
        "a function of facts that decides whether a flow may open a session: allow, or deny \"reason\""),
      .optional(
        "reasons", "table<string, string>",
        "messages that users see for deny \"reason\", as in { maintenance = \"Sign-in opens again at 3 o'clock.\" }"),
      .optional(
        "sign_in", "(string|moongate.AnyOf|moongate.SignInRequirement)[]",
        "the steps that every session of an existing account requires"),
      .optional(
        "offer", "(string|moongate.Offer)[]",
        "the factors that hosted pages offer to set up after a sign-in"),
      .optional(
        "change_within", "moongate.Duration", "the maximum age of a proof for a change of the account, such as \"10m\"",
        .text("10m")),
      .optional(
        "recovery_delay", "moongate.Duration",
        "how long a new phone number or email address, or a reset factor, only signs in, such as \"24h\"", .text("24h")),
      .optional(
        "unverified_lifetime", "moongate.Duration",
        "when an unused account without a verified identifier is deleted, such as \"30d\"",
        .text("30d")),
      .optional(
        "groups", "table<string, moongate.Members|fun(f: moongate.EntitlementFacts): boolean?>",
        "the groups, as in { ops = members() }"),
      .optional(
        "claims", "table<string, fun(f: moongate.EntitlementFacts): string|number|boolean|nil>",
        "functions that compute claims, as in { plan = function(f) return \"new\" end }"),
    ])

  static let registration = TableShape(
    name: "Registration", summary: "Registration for users with an invitation, or with an address of some domains.",
    items: "\"invited\" the word",
    entries: [
      .optional(
        "domains", "string[]",
        "the domains whose verified addresses need no invitation, without their subdomains, as in { \"example.com\" }")
    ])

  static let signInRequirement = TableShape(
    name: "SignInRequirement",
    summary: "A required step of every session: a provider or a choice of providers, with an optional condition.",
    items: "string|moongate.AnyOf the provider",
    entries: [
      .optional("when", "fun(f: moongate.FlowFacts): boolean?", "a function of facts"),
      .optional("enroll", "boolean", "true: an account without the factor sets it up during the sign-in", .flag(false)),
    ])

  static let offer = TableShape(
    name: "Offer", summary: "An offer to set up the factor of a provider, with its interval and an optional condition.",
    items: "string the provider",
    entries: [
      .optional(
        "every", "moongate.Duration", "the minimum time between two offers to one account, such as \"30d\"",
        .text("30d")),
      .optional("when", "fun(f: moongate.FlowFacts): boolean?", "a function of facts"),
    ])

  /// All shapes, except those of provider settings.
  static let all: [TableShape] = [
    .gateway, .admin, .adminToken, .auditFile, .auditSyslog, .auditWebhook, .otlp, .gate, .tls, .geo, .brand,
    .connectionLimits, .addressLimits,
    .flowLimits,
    .program,
    .outbox, .smtp, .webhook, .twilio, .policy, .mappedIdentity, .code, .timers, .limit, .flow, .step, .session,
    .remember, .next,
    .route, .routeTokens, .requirement, .routeAllow, .routeIdentity, .identityHeader, .identityBasic, .routeRetry,
    .routeHealth, .routeRate, .upstreamTLS,
    .accounts, .registration, .app, .appRequirement, .appLifetimes,
    .signInRequirement, .offer, .guarantee, .guaranteeAccount,
    .guaranteeClient, .guaranteeSession, .caseAccount, .caseClient, .caseToken, .caseInvitation, .caseSend,
    .caseWrong, .caseWait,
    .caseRequest, .caseAppSignIn, .caseExpect,
  ]
}
