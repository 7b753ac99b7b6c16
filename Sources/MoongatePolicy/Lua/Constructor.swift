/// A function that configuration files call to build a value, such as `policy` or `env`.
///
/// `LuaState` passes all of them to CLua; editors and the reference show their parameters and help.
struct Constructor: Sendable {
  /// The arguments that the function takes.
  enum Form: Sendable {
    case table, text, textOrTable, nothing, tableOrNothing
    /// A name, then a table if the name alone is not enough: `policy "pin" { … }`.
    case name
    /// A table, or a name as above: `app { … }`, `app "grafana"`.
    case tableOrName
    /// The lowest value, the highest, and a function that chooses between them: `vary(2, 5, function(f) … end)`.
    case boundsAndFunction
  }

  let name: String
  let form: Form
  /// Parameters and result as editors show them.
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
    Constructor(
      "gateway", .table, [("body", "moongate.Gateway")], "moongate.File",
      "Declares the settings of the gateway; gateway.lua returns it."),
    Constructor(
      "routes", .table, [("list", "moongate.Route[]")], "moongate.File", "Declares the routes; routes.lua returns it."),
    Constructor(
      "policy", .name, [("provider", "string")], "fun(body: moongate.Policy): moongate.File",
      "Declares the policy of a provider; policies/NAME.lua returns policy \"NAME\" { … }."
    ),
    Constructor(
      "flow", .name, [("name", "string")], "fun(body: moongate.Flow): moongate.File",
      "Declares a flow; flows/NAME.lua returns flow \"NAME\" { … }."),
    Constructor(
      "accounts", .table, [("body", "moongate.Accounts")], "moongate.File",
      "Declares the rules for all accounts; accounts.lua returns it."),
    Constructor(
      "apps", .table, [("apps", "table<string, moongate.Client>")], "moongate.File",
      "Declares the apps, by client id; apps.lua returns it."),
    Constructor(
      "app", .tableOrName, [("what", "moongate.App|string")],
      "moongate.Client|moongate.Act|fun(body: moongate.CaseAppSignIn): moongate.Act",
      "In apps.lua: an app that signs its users in. In a case, app \"grafana\": the user signs in to the app, with the session of the last flow."
    ),
    Constructor(
      "guarantees", .table, [("list", "moongate.Statement[]")], "moongate.File",
      "Declares the guarantees; guarantees.lua returns it."),
    Constructor(
      "guarantee", .name, [("statement", "string")], "moongate.Act|fun(body: moongate.Guarantee): moongate.Statement",
      "Declares a property that sessions must always have, named in your own words: guarantee \"statement\" { … }. In a case, guarantee \"statement\" checks it for the session."
    ),
    Constructor(
      "tests", .table, [("cases", "moongate.Case[]")], "moongate.File",
      "Declares test cases; tests/NAME.lua returns it."),
    Constructor(
      "case", .name, [("name", "string")],
      "fun(acts: (moongate.Act|fun(body: moongate.Flow): moongate.File)[]): moongate.Case",
      "Declares a test case: the actions of a user in order, and the expected answers: case \"what it shows\" { … }."),
    Constructor(
      "phone", .text, [("number", "string")], "moongate.Act", "In a case: the phone number, as the user types it."),
    Constructor(
      "email", .text, [("address", "string")], "moongate.Act", "In a case: the email address, as the user types it."),
    Constructor(
      "provider", .text, [("name", "string")], "moongate.Act",
      "In a case: selects one of the providers that a step offers."),
    Constructor(
      "undeliverable", .text, [("provider", "string")], "moongate.Act",
      "In a case: messages of this provider cannot be delivered from here on."),
    Constructor(
      "account", .table, [("what", "moongate.CaseAccount")], "moongate.Act",
      "In a case: describes the account that has the identifiers given so far."
    ),
    Constructor(
      "group", .textOrTable, [("names", "string|string[]|table<string, boolean>")], "moongate.Act",
      "In a case: adds the account to stored groups, or removes it with false."),
    Constructor(
      "invited", .tableOrNothing, [("what?", "moongate.CaseInvitation")], "moongate.Act",
      "In a case: an operator invites the user, whose next flow begins with the invitation."),
    Constructor(
      "token", .textOrTable, [("what", "string|moongate.CaseToken")], "moongate.Act",
      "In a case: the following requests carry this service token."),
    Constructor(
      "clock", .text, [("moment", "string")], "moongate.Act",
      "In a case: sets the clock to a time with its UTC offset, as in \"2026-12-24T23:30+05:30\"."),
    Constructor(
      "client", .table, [("what", "moongate.CaseClient")], "moongate.Act",
      "In a case: sets the client of the following requests."),
    Constructor(
      "send", .tableOrNothing, [("how?", "moongate.CaseSend")], "moongate.Act",
      "In a case: starts the step, which sends a code."),
    Constructor(
      "resend", .tableOrNothing, [("how?", "moongate.CaseSend")], "moongate.Act", "In a case: requests another code."),
    Constructor(
      "wrong", .tableOrNothing, [("how?", "moongate.CaseWrong")], "moongate.Act",
      "In a case: enters a wrong code."),
    Constructor(
      "right", .nothing, [], "moongate.Act",
      "In a case: answers the current step correctly, with the code that was sent or the account's secret."),
    Constructor(
      "enter", .table, [("what", "table<string, string>")], "moongate.Act",
      "In a case: submits these fields to the current step."),
    Constructor("skip", .nothing, [], "moongate.Act", "In a case: skips the step."),
    Constructor(
      "request", .table, [("what", "moongate.CaseRequest")], "moongate.Act",
      "In a case: requests a page behind the gateway, with the session of the last flow."),
    Constructor(
      "wait", .textOrTable, [("what", "moongate.Duration|moongate.CaseWait")], "moongate.Act",
      "In a case: advances the clock."),
    Constructor(
      "expect", .table, [("what", "moongate.CaseExpect")], "moongate.Act",
      "In a case: checks the answer to the previous action."),
    Constructor(
      "any_of", .table, [("names", "string[]")], "moongate.AnyOf",
      "One of several providers or groups: any of them satisfies the step or requirement."),
    Constructor(
      "members", .nothing, [], "moongate.Members",
      "A group whose members you manage with `moongate group add` and `moongate group remove`."),
    Constructor(
      "fallback", .table, [("providers", "string[]")], "moongate.Fallback",
      "A step that sends its code with the first provider, and with the next one if delivery fails."
    ),
    Constructor(
      "exec", .table, [("program", "moongate.Program")], "moongate.Exec",
      "A provider that runs as a separate program, in any language."),
    Constructor("env", .text, [("name", "string")], "moongate.Secret", "A secret from an environment variable."),
    Constructor(
      "credential", .text, [("name", "string")], "moongate.Secret",
      "A secret from a systemd credential, named by LoadCredential= in the unit."),
    Constructor(
      "file", .textOrTable, [("path", "string|moongate.AuditFile")], "moongate.Secret|moongate.AuditSink",
      "A secret from a file: file \"path\". In `audit`: a log file with one event per line: file { path = \"…\" }."),
    Constructor(
      "syslog", .tableOrNothing, [("settings?", "moongate.AuditSyslog")], "moongate.AuditSink",
      "In `audit`: sends events to a syslog server."),
    Constructor(
      "otlp", .table, [("settings", "moongate.OTLP")], "moongate.Tracing",
      "In `tracing`: sends the spans of requests to an OpenTelemetry collector."),
    Constructor(
      "outbox", .tableOrNothing, [("settings?", "moongate.Outbox")], "moongate.Delivery",
      "Keeps messages in memory and shows them on the admin listener; sends nothing."),
    Constructor(
      "webhook", .table, [("settings", "moongate.Webhook|moongate.AuditWebhook")],
      "moongate.Delivery|moongate.AuditSink",
      "Posts messages to a URL; in `audit`, posts events."),
    Constructor("twilio", .table, [("settings", "moongate.Twilio")], "moongate.Delivery", "Sends SMS with Twilio."),
    Constructor(
      "smtp", .table, [("settings", "moongate.SMTP")], "moongate.Delivery", "Sends mail through an SMTP server."),
    Constructor(
      "vary", .boundsAndFunction,
      [("lowest", "any"), ("highest", "any"), ("choose", "fun(f: moongate.PolicyFacts): any")], "moongate.Vary",
      "A number or duration that a function chooses within two bounds."),
  ]
}
