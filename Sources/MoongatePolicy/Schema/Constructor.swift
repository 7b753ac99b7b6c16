/// A word that files are made of: what it is called with, and what editors and the reference say of it. CLua is given
/// them all.
struct Constructor: Sendable {
  /// What stands behind the word.
  enum Form: Sendable {
    case table, text, textOrTable, nothing, tableOrNothing
    /// A name, and where one is wanted a table behind it: `policy "pin" { … }`.
    case name
  }

  let name: String
  let form: Form
  /// As editors show them.
  let parameters: [(name: String, type: String)]
  let result: String
  let help: String

  private init(
    _ name: String, _ form: Form, _ parameters: [(name: String, type: String)], _ result: String, _ help: String
  ) {
    self.name = name
    self.form = form
    self.parameters = parameters
    self.result = result
    self.help = help
  }

  static let all: [Constructor] = [
    Constructor("gateway", .table, [("body", "moongate.Gateway")], "moongate.File", "gateway.lua returns this."),
    Constructor("routes", .table, [("list", "moongate.Route[]")], "moongate.File", "routes.lua returns this."),
    Constructor(
      "policy", .name, [("provider", "string")], "fun(body: moongate.Policy): moongate.File",
      "policies/NAME.lua returns this: policy \"NAME\" { … }."
    ),
    Constructor(
      "flow", .name, [("name", "string")], "fun(body: moongate.Flow): moongate.File",
      "flows/NAME.lua returns this: flow \"NAME\" { … }."),
    Constructor("accounts", .table, [("body", "moongate.Accounts")], "moongate.File", "accounts.lua returns this."),
    Constructor(
      "guarantees", .table, [("list", "moongate.Statement[]")], "moongate.File", "guarantees.lua returns this."),
    Constructor(
      "guarantee", .name, [("statement", "string")], "moongate.Act|fun(body: moongate.Guarantee): moongate.Statement",
      "What is always true of sessions, in your own words: guarantee \"statement\" { … }. In a case, guarantee \"statement\" demands it of the session."
    ),
    Constructor("tests", .table, [("cases", "moongate.Case[]")], "moongate.File", "tests/NAME.lua returns this."),
    Constructor(
      "case", .name, [("name", "string")],
      "fun(acts: (moongate.Act|fun(body: moongate.Flow): moongate.File)[]): moongate.Case",
      "What a person does, in order, and what is expected: case \"what it shows\" { … }."),
    Constructor("phone", .text, [("number", "string")], "moongate.Act", "Who it is, as they would type it."),
    Constructor("email", .text, [("address", "string")], "moongate.Act", "Who it is, as they would type it."),
    Constructor("provider", .text, [("name", "string")], "moongate.Act", "Which of a step's choices to take."),
    Constructor(
      "undeliverable", .text, [("provider", "string")], "moongate.Act",
      "No message of this provider arrives, from here on."),
    Constructor(
      "account", .table, [("what", "moongate.CaseAccount")], "moongate.Act", "Whether there is an account of that name."
    ),
    Constructor(
      "group", .textOrTable, [("names", "string|string[]|table<string, boolean>")], "moongate.Act",
      "Adds the account to stored groups, or removes it with false."),
    Constructor(
      "token", .textOrTable, [("what", "string|moongate.CaseToken")], "moongate.Act",
      "Requests come from a program with this service token, from here on."),
    Constructor(
      "clock", .text, [("moment", "string")], "moongate.Act",
      "Sets the clock to a moment with its offset, as in \"2026-12-24T23:30+05:30\"."),
    Constructor(
      "client", .table, [("what", "moongate.CaseClient")], "moongate.Act", "Where requests come from, from here on."),
    Constructor(
      "send", .tableOrNothing, [("how?", "moongate.CaseSend")], "moongate.Act", "Begins the step: a code goes out."),
    Constructor("resend", .tableOrNothing, [("how?", "moongate.CaseSend")], "moongate.Act", "Asks for another code."),
    Constructor(
      "wrong", .tableOrNothing, [("how?", "moongate.CaseWrong")], "moongate.Act",
      "Enters a code that is not the one that was sent."),
    Constructor(
      "right", .nothing, [], "moongate.Act",
      "Answers the open step as it asks: by the code that it sent, or by the account's secret."),
    Constructor(
      "enter", .table, [("what", "table<string, string>")], "moongate.Act",
      "Gives these fields to the step that is open, or due."),
    Constructor("skip", .nothing, [], "moongate.Act", "Passes the step over."),
    Constructor(
      "request", .table, [("what", "moongate.CaseRequest")], "moongate.Act",
      "Asks for a page behind the gateway, signed in as by the last flow."),
    Constructor(
      "wait", .textOrTable, [("what", "moongate.Duration|moongate.CaseWait")], "moongate.Act", "Moves the clock."),
    Constructor(
      "expect", .table, [("what", "moongate.CaseExpect")], "moongate.Act", "What the answer before it must be."),
    Constructor(
      "any_of", .table, [("names", "string[]")], "moongate.AnyOf",
      "A step that any of these providers passes, or any one of these groups."),
    Constructor(
      "members", .nothing, [], "moongate.Members",
      "A group whose members `moongate group add` and `group remove` change."),
    Constructor(
      "fallback", .table, [("providers", "string[]")], "moongate.Fallback",
      "A step whose code the first of these providers sends, and each next one where the one before it cannot deliver it."
    ),
    Constructor(
      "exec", .table, [("program", "moongate.Program")], "moongate.Exec",
      "A provider that is another program, in any language."),
    Constructor("env", .text, [("name", "string")], "moongate.Secret", "A secret from the environment."),
    Constructor(
      "credential", .text, [("name", "string")], "moongate.Secret",
      "A secret that systemd hands over, as LoadCredential= in the unit names it."),
    Constructor(
      "file", .textOrTable, [("path", "string|moongate.AuditFile")], "moongate.Secret|moongate.AuditSink",
      "A secret from a file: file \"path\". In `audit`: a file with an event a line: file { path = \"…\" }."),
    Constructor(
      "syslog", .tableOrNothing, [("settings?", "moongate.AuditSyslog")], "moongate.AuditSink",
      "In `audit`: sends events to a syslog server."),
    Constructor(
      "otlp", .table, [("settings", "moongate.OTLP")], "moongate.Tracing",
      "In `tracing`: sends spans of requests to a collector of OpenTelemetry."),
    Constructor(
      "outbox", .tableOrNothing, [("settings?", "moongate.Outbox")], "moongate.Delivery",
      "Sends nothing: keeps messages in memory and shows them on the admin listener."),
    Constructor(
      "webhook", .table, [("settings", "moongate.Webhook|moongate.AuditWebhook")],
      "moongate.Delivery|moongate.AuditSink",
      "Posts messages to a site; in `audit`, events."),
    Constructor("twilio", .table, [("settings", "moongate.Twilio")], "moongate.Delivery", "Sends SMS by Twilio."),
    Constructor("smtp", .table, [("settings", "moongate.SMTP")], "moongate.Delivery", "Sends mail by a mail server."),
  ]
}
