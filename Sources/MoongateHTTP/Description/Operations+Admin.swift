// The operations of the admin listener.
import HTTPTypes
import MoongateCore

extension Operation {
  static let healthz = Operation(
    id: "healthz", method: .get, path: "/healthz", summary: "Whether the process is alive; needs no token",
    tag: .operation, status: 200,
    content: .json(Schema.answer(["status": Schema.text])), isOpen: true)
  static let readyz = Operation(
    id: "readyz", method: .get, path: "/readyz", summary: "Whether the gateway can serve; needs no token",
    tag: .operation, status: 200,
    content: .json(Schema.answer(["status": Schema.text, "generation": Schema.text])), isOpen: true,
    otherAnswers: [503: Schema.named("NotReady")])
  static let metrics = Operation(
    id: "metrics", method: .get, path: "/metrics", summary: "Metrics, in the text format of Prometheus",
    tag: .operation, status: 200,
    content: .text(MetricText.mediaType))
  static let policy = Operation(
    id: "policy", method: .get, path: "/policy", summary: "The active configuration, and the problems of a newer one",
    tag: .operation,
    status: 200,
    content: .json(Schema.named("PolicyStatus")))
  static let policyValues = Operation(
    id: "policyValues", method: .get, path: "/policy/values",
    summary: "Every value of the active policies with its source line, and the guesses that they allow",
    tag: .operation,
    status: 200, content: .json(Schema.named("PolicyValues")))
  static let reloadPolicy = Operation(
    id: "reloadPolicy", method: .post, path: "/policy/reload", summary: "Reload the configuration", tag: .operation,
    query: [
      Query(
        name: "force", help: "1 skips the gate of gateway.lua", isRequired: false,
        schema: Schema.one), Query.asked,
    ], status: 200, content: .json(Schema.named("PolicyStatus")),
    refusals: act, otherAnswers: [422: Self.problems])

  static let upgrade = Operation(
    id: "upgrade", method: .post, path: "/upgrade",
    summary:
      "Replace this process by a new one without failing requests; answers once the new process serves or has failed",
    tag: .operation,
    query: [
      Query(
        name: "within", help: "Maximum number of seconds until it serves, at most 600; 60 by default",
        isRequired: false,
        schema: Schema.positive(most: mostSecondsOfUpgrade)), Query.asked,
    ], status: 200, content: .json(Schema.answer(["process": Schema.number, "generation": Schema.text])), refusals: act,
    otherAnswers: [422: Schema.answer(["why": Schema.text])])

  static let beginShadow = Operation(
    id: "beginShadow", method: .post, path: "/policy/shadow",
    summary: "Start a shadow candidate: it evaluates live traffic next to the active configuration, without effect",
    tag: .operation,
    query: [
      Query(
        name: "folder", help: "The absolute path of its folder on the gateway's machine", isRequired: true,
        schema: Schema.queryText), Query.asked,
    ], status: 200, content: .json(Schema.named("PolicyStatus")), refusals: act, otherAnswers: [422: Self.problems])
  static let promoteShadow = Operation(
    id: "promoteShadow", method: .post, path: "/policy/shadow/promote",
    summary: "Make the shadow candidate the active configuration", tag: .operation,
    query: [
      Query(
        name: "force", help: "1 skips the gate of gateway.lua", isRequired: false,
        schema: Schema.one), Query.asked,
    ], status: 200, content: .json(Schema.named("PolicyStatus")), refusals: act + [.notFound],
    otherAnswers: [422: Self.problems])
  static let endShadow = Operation(
    id: "endShadow", method: .delete, path: "/policy/shadow",
    summary: "End the shadow candidate and discard its results", tag: .operation,
    query: [Query.asked], status: 204,
    content: .nothing, refusals: act + [.notFound])
  private static let problems = Schema.answer(["problems": Schema.list(of: Schema.named("ConfigurationProblem"))])

  static let locks = Operation(
    id: "locks", method: .get, path: "/locks",
    summary: "The current locks of limits, oldest first, with their accounts or identifiers", tag: .people,
    status: 200,
    content: .json(Schema.list(of: Schema.named("Lock"))))
  static let clearLock = Operation(
    id: "clearLock", method: .delete, path: "/locks/{name}",
    summary: "Lift a lock by its id, or all locks of a user by account id, phone number or email address", tag: .people,
    status: 204, content: .nothing, refusals: act + [.notFound])

  static let accounts = Operation(
    id: "accounts", method: .get, path: "/accounts",
    summary: "Accounts in the order of their ids, 1,000 a page, or those with a given id or identifier",
    tag: .people,
    query: [
      Query(
        name: "name", help: "An account's id, a phone number, an email address or a user name", isRequired: false,
        schema: Schema.queryText),
      Query(name: "after", help: "Begin after this id", isRequired: false, schema: Schema.queryText),
    ], status: 200, content: .json(Schema.list(of: Schema.named("OperatedAccount"))))
  static let account = Operation(
    id: "account", method: .get, path: "/accounts/{name}",
    summary: "An account with its locks, factors, sessions, trusted devices and last sign-ins", tag: .people,
    status: 200,
    content: .json(Schema.named("AccountOverview")), refusals: [.notFound])
  static let accountSessions = Operation(
    id: "accountSessions", method: .get, path: "/accounts/{name}/sessions",
    summary: "An account's sessions, newest first", tag: .people, status: 200,
    content: .json(Schema.list(of: Schema.named("OperatedSession"))), refusals: [.notFound])
  static let accountDevices = Operation(
    id: "accountDevices", method: .get, path: "/accounts/{name}/devices",
    summary: "An account's trusted devices, the one that was seen last first", tag: .people, status: 200,
    content: .json(Schema.list(of: Schema.answer(Components.device))), refusals: [.notFound])
  static let removeAccountDevice = Operation(
    id: "removeAccountDevice", method: .delete, path: "/accounts/{name}/devices/{device}",
    summary: "No longer trust a device of an account", tag: .people, status: 204, content: .nothing,
    refusals: act + [.notFound])
  static let exportAccountByOperator = Operation(
    id: "exportAccount", method: .get, path: "/accounts/{name}/export",
    summary: "Everything that is stored about a person; needs the role act", tag: .people,
    status: 200,
    content: .json(Schema.named("AccountExport")), refusals: [.notFound])
  private static let why = Query(
    name: "reason", help: "Why, for the audit trail and for `policy explain`", isRequired: false,
    schema: Schema.queryText)
  static let lockAccount = Operation(
    id: "lockAccount", method: .post, path: "/accounts/{name}/lock",
    summary: "Lock an account: its sessions end, and sign-ins are refused", tag: .people,
    query: [why], status: 204,
    content: .nothing, refusals: act + [.notFound])
  static let unlockAccount = Operation(
    id: "unlockAccount", method: .post, path: "/accounts/{name}/unlock",
    summary: "Lift every lock that prevents a user from signing in", tag: .people,
    status: 200,
    content: .json(
      Schema.answer(["account": Schema.text, "was_locked": Schema.flag, "locks": Schema.list(of: Schema.named("Lock"))])
    ),
    refusals: act + [.disabled, .notFound])
  static let disableAccount = Operation(
    id: "disableAccount", method: .post, path: "/accounts/{name}/disable",
    summary: "Lock a compromised account, and delete its PIN, password and other factors",
    tag: .people,
    query: [why], status: 204, content: .nothing, refusals: act + [.notFound])
  static let resetFactor = Operation(
    id: "resetFactor", method: .delete, path: "/accounts/{name}/factors/{provider}",
    summary: "Remove one factor of an account", tag: .people, status: 204, content: .nothing,
    refusals: act + [.notFound])
  static let endAccountSessions = Operation(
    id: "endAccountSessions", method: .delete, path: "/accounts/{name}/sessions", summary: "End an account's sessions",
    tag: .people, status: 204,
    content: .nothing,
    refusals: act + [.notFound])
  static let deleteAccountByOperator = Operation(
    id: "deleteAccount", method: .delete, path: "/accounts/{name}", summary: "Delete an account and all personal data",
    tag: .people, status: 204, content: .nothing,
    refusals: act + [.notFound])

  static let groups = Operation(
    id: "groups", method: .get, path: "/groups", summary: "The groups that accounts.lua defines or that have members",
    tag: .people, status: 200,
    content: .json(Schema.list(of: Schema.named("Group"))))
  static let groupMembers = Operation(
    id: "group", method: .get, path: "/groups/{group}",
    summary: "The members of a group in the order of their ids, 1,000 a page", tag: .people,
    query: [
      Query(
        name: "after", help: "Begin after this account's id", isRequired: false,
        schema: Schema.queryText)
    ], status: 200,
    content: .json(Schema.named("GroupMembers")), refusals: [.notFound, .invalidInput])
  static let addGroupMember = Operation(
    id: "addGroupMember", method: .put, path: "/groups/{group}/members/{name}",
    summary: "Add an account to a group: by its id, or by a verified phone number or email address", tag: .people,
    status: 200, content: .json(Schema.named("GroupChange")),
    refusals: act + [.notFound, .invalidInput])
  static let removeGroupMember = Operation(
    id: "removeGroupMember", method: .delete, path: "/groups/{group}/members/{name}",
    summary: "Remove an account from a group", tag: .people, status: 200,
    content: .json(Schema.named("GroupChange")), refusals: act + [.notFound, .invalidInput])

  static let invitations = Operation(
    id: "invitations", method: .get, path: "/invitations",
    summary: "The invitations that can be used, in the order of their ids, 1,000 a page", tag: .people,
    query: [
      Query(name: "after", help: "Begin after this invitation's id", isRequired: false, schema: Schema.queryText)
    ], status: 200,
    content: .json(Schema.list(of: Schema.named("Invitation"))))
  static let createInvitation = Operation(
    id: "createInvitation", method: .post, path: "/invitations",
    summary: "Create an invitation; only this answer, or the message to the user, contains its code and its link",
    tag: .people, query: [Query.asked],
    body: Schema.body(
      [:],
      perhaps: [
        "recipient": Schema.optionalText, "groups": Schema.optionalTexts, "expires": Schema.optionalText,
        "send": Schema.nullable(Schema.flag), "language": Schema.optionalText,
      ]), status: 201, content: .json(Schema.named("NewInvitation")), refusals: act + [.rateLimited])
  static let revokeInvitation = Operation(
    id: "revokeInvitation", method: .delete, path: "/invitations/{invitation}", summary: "Revoke an invitation",
    tag: .people, status: 204, content: .nothing, refusals: act + [.notFound])

  static let serviceTokens = Operation(
    id: "tokens", method: .get, path: "/tokens", summary: "The service tokens by name, without their secrets",
    tag: .programs, status: 200,
    content: .json(Schema.list(of: Schema.named("ServiceToken"))))
  static let createServiceToken = Operation(
    id: "createServiceToken", method: .post, path: "/tokens",
    summary: "Create a token; only this answer contains its secret", tag: .programs,
    body: Schema.body(
      ["name": Schema.text],
      perhaps: [
        "groups": Schema.optionalTexts, "expires": Schema.optionalText, "networks": Schema.optionalTexts,
      ]), status: 201, content: .json(Schema.named("NewServiceToken")), refusals: act + [.alreadySet])
  static let rotateServiceToken = Operation(
    id: "rotateServiceToken", method: .post, path: "/tokens/{name}/rotate",
    summary: "Give a token a new secret; the old one stays valid for `overlap` (24h by default)", tag: .programs,
    body: Schema.body([:], perhaps: ["overlap": Schema.optionalText]), status: 200,
    content: .json(Schema.named("NewServiceToken")), refusals: act + [.notFound])
  static let revokeServiceToken = Operation(
    id: "revokeToken", method: .delete, path: "/tokens/{name}", summary: "Revoke a token, with all its earlier secrets",
    tag: .programs,
    status: 204,
    content: .nothing, refusals: act + [.notFound])

  static let events = Operation(
    id: "events", method: .get, path: "/events", summary: "The audit trail, newest first", tag: .trail,
    query: [
      Query(
        name: "account", help: "Events of one user: an account id, a phone number, an email address or a user name",
        isRequired: false,
        schema: Schema.queryText),
      Query(
        name: "identifier", help: "Events about a phone number or email address, whether or not an account has it",
        isRequired: false,
        schema: Schema.queryText),
      Query(
        name: "kind", help: "Kinds of events, separated by commas", isRequired: false,
        schema: Schema.named("EventKind")),
      Query(
        name: "since", help: "Events since: 90s, 30m, 12h, 7d, or 2026-11-20T12:15:00Z", isRequired: false,
        schema: Schema.since),
      Query(
        name: "decision", help: "Events of one request, by its decision id", isRequired: false,
        schema: Schema.decision),
      Query(
        name: "limit", help: "Maximum number of events", isRequired: false,
        schema: Schema.positive(most: mostEventsOfTrail)),
    ], status: 200, content: .json(Schema.list(of: Schema.named("Event"))), otherTypes: ["text/event-stream"])
  static let decision = Operation(
    id: "decision", method: .get, path: "/decisions/{decision}", summary: "One event of the audit trail", tag: .trail,
    status: 200,
    content: .json(Schema.named("Event")),
    refusals: [.notFound])
  static let outbox = Operation(
    id: "outbox", method: .get, path: "/outbox", summary: "The messages of outbox(), newest first; needs the role act",
    tag: .operation, status: 200,
    content: .json(Schema.list(of: Schema.named("OutboxMessage"))), refusals: [.notFound],
    otherTypes: ["text/html; charset=utf-8"])
  static let adminOpenAPI = Operation(
    id: "openAPI", method: .get, path: "/openapi.json", summary: "This document", tag: .operation, status: 200,
    content: .json(Schema.body(["openapi": Schema.text])))

  private static let act: [RefusalCode] = [.originRefused]

  /// Refusals of every call of the admin listener except the two health checks.
  static let adminRefusals: [RefusalCode] = [.unauthenticated, .denied, .rateLimited]
}

extension Operation.Query {
  /// The operator who gives the command.
  static let asked = Self(
    name: "as", help: "The name of the operator for the audit trail, if there is no token", isRequired: false,
    schema: Schema.queryText)
}

extension Operation {
  /// The maximum number of events in an answer: the size of the audit trail.
  static let mostEventsOfTrail = AuditQuota.allCases.map(\.most).reduce(0, +)
  /// How long an upgrade may take, in seconds.
  static let mostSecondsOfUpgrade = 600
}

extension Schema {
  static let since: JSONValue = .members([
    "type": .text("string"),
    "pattern": .text(
      "^([1-9][0-9]{0,3}[smhd]|20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)$"
    ),
  ])
  static let one: JSONValue = .members(["type": .text("string"), "enum": .list([.text("1")])])
  static let counts = answer(["step": count, "condition": count, "flow": count, "request": count])
  static let decision: JSONValue = .members(["type": .text("string"), "pattern": .text("^dc_[A-Za-z0-9_-]{1,40}$")])
  static func positive(most: Int) -> JSONValue {
    .members(["type": .text("integer"), "minimum": .number(1), "maximum": .number(most)])
  }
}

extension Components {
  /// The schemas of the admin listener's answers.
  static let admin: KeyValuePairs<String, JSONValue> = [
    "Lock": Schema.answer([
      "id": Schema.text, "provider": Schema.text, "limit": Schema.text, "since": Schema.moment,
      "until": Schema.nullable(Schema.moment),
      "remaining": Schema.nullable(Schema.count),
      "identifier": Schema.nullable(Schema.answer(["kind": Schema.text, "value": Schema.text])),
      "account": Schema.optionalText, "per": Schema.optionalText, "policy": Schema.optionalText,
      "failures": Schema.count,
      "sources": Schema.list(of: Schema.answer(["address": Schema.text, "count": Schema.count])),
    ]),
    "OperatedAccount": Schema.answer(KeyValuePairs.account),
    "AccountOverview": Schema.answer(
      KeyValuePairs.account,
      perhaps: [
        "locks": Schema.list(of: Schema.named("Lock")),
        "factors": Schema.list(
          of: Schema.answer([
            "provider": Schema.text, "added_at": Schema.moment, "changed_at": Schema.moment,
          ])), "sessions": Schema.list(of: Schema.named("OperatedSession")),
        "devices": Schema.list(of: Schema.answer(device)),
        "tokens": Schema.list(of: Schema.named("PersonalToken")),
        "sign_ins": Schema.list(
          of: Schema.answer([
            "id": Schema.text, "at": Schema.moment, "flow": Schema.optionalText, "address": Schema.optionalText,
          ])),
      ]),
    "OperatedSession": Schema.answer(listedSession),
    "PassedStep": Schema.answer(["provider": Schema.text, "at": Schema.moment]),
    "Event": Schema.answer([
      "id": Schema.text, "at": Schema.text, "kind": Schema.named("EventKind"), "code": Schema.optionalText,
      "flow": Schema.optionalText,
      "flow_prefix": Schema.optionalText, "provider": Schema.optionalText, "account": Schema.optionalText,
      "identifier": Schema.optionalText,
      "address": Schema.optionalText, "country": Schema.optionalText, "asn": Schema.nullable(Schema.count),
      "operator": Schema.optionalText, "count": Schema.nullable(Schema.count),
      "detail": Schema.anyObject,
    ]),
    "Group": Schema.answer(["group": Schema.text, "kind": Schema.text, "members": Schema.nullable(Schema.count)]),
    "GroupMembers": Schema.answer([
      "group": Schema.text, "kind": Schema.text,
      "members": Schema.list(
        of: Schema.answer([
          "account": Schema.text, "identifiers": Schema.list(of: Schema.text), "added_at": Schema.moment,
        ])),
    ]),
    "GroupChange": Schema.answer([
      "group": Schema.text, "account": Schema.text, "member": Schema.flag, "changed": Schema.flag,
    ]),
    "Invitation": Schema.answer(KeyValuePairs.invitation),
    "NewInvitation": Schema.answer(
      KeyValuePairs.invitation,
      perhaps: ["code": Schema.text, "link": Schema.text, "sent": Schema.flag, "fault": Schema.text]),
    "ServiceToken": Schema.answer(KeyValuePairs.serviceToken),
    "NewServiceToken": Schema.answer(KeyValuePairs.serviceToken, perhaps: ["token": Schema.text]),
    "NotReady": Schema.answer(["status": Schema.text, "reasons": Schema.list(of: Schema.text)]),
    "ConfigurationProblem": Schema.answer([
      "file": Schema.text, "line": Schema.nullable(Schema.count), "path": Schema.text, "message": Schema.text,
    ]),
    "PolicyStatus": Schema.answer([
      "active": Schema.text, "since": Schema.moment,
      "candidate_refused": Schema.nullable(
        Schema.answer([
          "id": Schema.optionalText, "at": Schema.moment,
          "problems": Schema.list(of: Schema.named("ConfigurationProblem")),
        ])), "warnings": Schema.list(of: Schema.named("ConfigurationProblem")),
      "restart_needed": Schema.list(of: Schema.named("ConfigurationProblem")),
      "nodes": Schema.list(
        of: Schema.answer([
          "id": Schema.text, "generation": Schema.text, "seen_at": Schema.moment, "keys": Schema.list(of: Schema.text),
        ])), "shadow": Schema.nullable(Schema.named("Shadow")),
    ]),
    "Shadow": Schema.answer([
      "id": Schema.text, "folder": Schema.text, "since": Schema.moment, "by": Schema.optionalText,
      "against": Schema.text,
      "judged": Schema.counts, "differing": Schema.counts, "dropped": Schema.counts,
      "differences": Schema.list(
        of: Schema.answer([
          "about": Schema.text, "active": Schema.text, "candidate": Schema.text, "rule": Schema.optionalText,
          "count": Schema.count,
          "first": Schema.moment, "last": Schema.moment, "decisions": Schema.list(of: Schema.text),
        ])), "other_differences": Schema.count, "counters_restarted": Schema.count,
      "warnings": Schema.list(of: Schema.named("ConfigurationProblem")), "failure": Schema.optionalText,
    ]),
    "PolicyValues": Schema.answer([
      "generation": Schema.text,
      "policies": Schema.list(
        of: Schema.answer([
          "name": Schema.text,
          "values": Schema.list(
            of: Schema.answer([
              "path": Schema.text, "value": Schema.text, "file": Schema.optionalText,
              "line": Schema.nullable(Schema.count),
            ])),
        ])),
      "budgets": Schema.list(
        of: Schema.answer([
          "provider": Schema.text, "guesses_per_day": Schema.nullable(Schema.count),
          "guesses_per_30d": Schema.nullable(Schema.count),
        ])),
    ]),
    "OutboxMessage": Schema.answer([
      "id": Schema.text, "at": Schema.moment, "channel": Schema.text, "to": Schema.text, "subject": Schema.optionalText,
      "text": Schema.text,
      "code": Schema.optionalText,
    ]),
  ]
}

extension KeyValuePairs<String, JSONValue> {
  fileprivate static let invitation: KeyValuePairs<String, JSONValue> = [
    "id": Schema.text, "recipient": Schema.optionalText, "groups": Schema.list(of: Schema.text),
    "created_at": Schema.moment, "expires_at": Schema.moment,
  ]
  fileprivate static let serviceToken: KeyValuePairs<String, JSONValue> = [
    "id": Schema.text, "name": Schema.text, "groups": Schema.list(of: Schema.text),
    "networks": Schema.list(of: Schema.text),
    "created_at": Schema.moment, "expires_at": Schema.nullable(Schema.moment), "expired": Schema.flag,
    "last_used_at": Schema.nullable(Schema.moment), "last_used_from": Schema.optionalText,
    "previous_until": Schema.nullable(Schema.moment),
  ]
  fileprivate static let account: KeyValuePairs<String, JSONValue> = [
    "id": Schema.text, "first_name": Schema.optionalText, "last_name": Schema.optionalText, "created_at": Schema.moment,
    "last_seen_at": Schema.moment, "locked": Schema.flag,
    "identifiers": Schema.list(
      of: Schema.answer(["kind": Schema.text, "value": Schema.text, "verified_at": Schema.nullable(Schema.moment)])),
    "credentials": Schema.list(of: Schema.text), "groups": Schema.list(of: Schema.text),
  ]
}
