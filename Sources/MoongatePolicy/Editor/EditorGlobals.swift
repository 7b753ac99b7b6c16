/// The names that every file finds, as editors are told them. CLua makes them; a test holds this list against it.
enum EditorGlobals {
  /// A function: how it is called, what it gives, and one sentence.
  private struct Function {
    let name: String
    let parameters: [(name: String, type: String)]
    let result: String?
    let help: String

    init(_ name: String, _ parameters: [(name: String, type: String)], _ result: String?, _ help: String) {
      self.name = name
      self.parameters = parameters
      self.result = result
      self.help = help
    }

    var text: String {
      var lines = ["---\(help)"]
      lines += parameters.map { "---@param \($0.name) \($0.type)" }
      if let result { lines.append("---@return \(result)") }
      let names = parameters.map { $0.name.replacing("?", with: "") }.joined(separator: ", ")
      lines.append("function \(name)(\(names)) end")
      return lines.joined(separator: "\n")
    }
  }

  private static let constructors: [Function] = [
    Function("gateway", [("body", "moongate.Gateway")], "moongate.File", "gateway.lua returns this."),
    Function("routes", [("list", "moongate.Route[]")], "moongate.File", "routes.lua returns this."),
    Function(
      "policy", [("provider", "string")], "fun(body: moongate.Policy): moongate.File", "policies/NAME.lua returns this: policy \"NAME\" { … }."),
    Function("flow", [("name", "string")], "fun(body: moongate.Flow): moongate.File", "flows/NAME.lua returns this: flow \"NAME\" { … }."),
    Function("accounts", [("body", "moongate.Accounts")], "moongate.File", "accounts.lua returns this."),
    Function("guarantees", [("list", "moongate.Statement[]")], "moongate.File", "guarantees.lua returns this."),
    Function(
      "guarantee", [("statement", "string")], "moongate.Act|fun(body: moongate.Guarantee): moongate.Statement",
      "What is always true of sessions, in your own words: guarantee \"statement\" { … }. In a case, guarantee \"statement\" demands it of the session."
    ),
    Function("tests", [("cases", "moongate.Case[]")], "moongate.File", "tests/NAME.lua returns this."),
    Function(
      "case", [("name", "string")], "fun(acts: (moongate.Act|fun(body: moongate.Flow): moongate.File)[]): moongate.Case",
      "What a person does, in order, and what is expected: case \"what it shows\" { … }."),
    Function("phone", [("number", "string")], "moongate.Act", "Who it is, as they would type it."),
    Function("email", [("address", "string")], "moongate.Act", "Who it is, as they would type it."),
    Function("provider", [("name", "string")], "moongate.Act", "Which of a step's choices to take."),
    Function("undeliverable", [("provider", "string")], "moongate.Act", "No message of this provider arrives, from here on."),
    Function("account", [("what", "moongate.CaseAccount")], "moongate.Act", "Whether there is an account of that name."),
    Function(
      "group", [("names", "string|string[]|table<string, boolean>")], "moongate.Act", "Adds the account to stored groups, or removes it with false."),
    Function("token", [("what", "string|moongate.CaseToken")], "moongate.Act", "Requests come from a program with this service token, from here on."),
    Function(
      "clock", [("moment", "string")], "moongate.Act", "Sets the clock to a moment with its offset, as in \"2026-12-24T23:30+05:30\"."),
    Function("client", [("what", "moongate.CaseClient")], "moongate.Act", "Where requests come from, from here on."),
    Function("send", [("how?", "moongate.CaseSend")], "moongate.Act", "Begins the step: a code goes out."),
    Function("resend", [("how?", "moongate.CaseSend")], "moongate.Act", "Asks for another code."),
    Function("wrong", [("how?", "moongate.CaseWrong")], "moongate.Act", "Enters a code that is not the one that was sent."),
    Function("right", [], "moongate.Act", "Answers the open step as it asks: by the code that it sent, or by the account's secret."),
    Function("enter", [("what", "table<string, string>")], "moongate.Act", "Gives these fields to the step that is open, or due."),
    Function("skip", [], "moongate.Act", "Passes the step over."),
    Function("request", [("what", "moongate.CaseRequest")], "moongate.Act", "Asks for a page behind the gateway, signed in as by the last flow."),
    Function("wait", [("what", "moongate.Duration|moongate.CaseWait")], "moongate.Act", "Moves the clock."),
    Function("expect", [("what", "moongate.CaseExpect")], "moongate.Act", "What the answer before it must be."),
    Function("any_of", [("names", "string[]")], "moongate.AnyOf", "A step that any of these providers passes, or any one of these groups."),
    Function("members", [], "moongate.Members", "A group whose members `moongate group add` and `group remove` change."),
    Function(
      "fallback", [("providers", "string[]")], "moongate.Fallback",
      "A step whose code the first of these providers sends, and each next one where the one before it cannot deliver it."),
    Function(
      "vary", [("lowest", "any"), ("highest", "any"), ("choose", "fun(f: moongate.PolicyFacts): any")], "moongate.Vary",
      "A number or duration that a function chooses between two bounds."),
    Function("exec", [("program", "moongate.Program")], "moongate.Exec", "A provider that is another program, in any language."),
    Function("env", [("name", "string")], "moongate.Secret", "A secret from the environment."),
    Function("credential", [("name", "string")], "moongate.Secret", "A secret that systemd hands over, as LoadCredential= in the unit names it."),
    Function(
      "file", [("path", "string|moongate.AuditFile")], "moongate.Secret|moongate.AuditSink",
      "A secret from a file: file \"path\". In `audit`: a file with an event a line: file { path = \"…\" }."),
    Function("syslog", [("settings?", "moongate.AuditSyslog")], "moongate.AuditSink", "In `audit`: sends events to a syslog server."),
    Function("otlp", [("settings", "moongate.OTLP")], "moongate.Tracing", "In `tracing`: sends spans of requests to a collector of OpenTelemetry."),
    Function(
      "outbox", [("settings?", "moongate.Outbox")], "moongate.Delivery",
      "Sends nothing: keeps messages in memory and shows them on the admin listener."),
    Function(
      "webhook", [("settings", "moongate.Webhook|moongate.AuditWebhook")], "moongate.Delivery|moongate.AuditSink",
      "Posts messages to a site; in `audit`, events."),
    Function("twilio", [("settings", "moongate.Twilio")], "moongate.Delivery", "Sends SMS by Twilio."),
    Function("smtp", [("settings", "moongate.SMTP")], "moongate.Delivery", "Sends mail by a mail server."),
    Function("deny", [("reason", "string")], "moongate.Decision", "Refuses; the reason, in snake case, reaches the log and the client."),
    Function("require_also", [("provider", "string")], "moongate.Decision", "Lets through only after this provider was passed as well."),
  ]

  private static let helpers: [Function] = [
    Function("starts_with", [("text", "string"), ("start", "string")], "boolean", "Whether the text begins with another."),
    Function("ends_with", [("text", "string"), ("ending", "string")], "boolean", "Whether the text ends with another."),
    Function("contains", [("text", "string"), ("part", "string")], "boolean", "Whether the text holds another."),
    Function("glob", [("text", "string"), ("pattern", "string")], "boolean", "Whether the text fits a pattern in which * is any run of bytes."),
    Function("cidr", [("block", "string"), ("address", "string")], "boolean", "Whether an address lies in a block such as \"10.0.0.0/8\"."),
    Function("one_of", [("value", "any"), ("list", "any[]")], "boolean", "Whether a list holds the value."),
    Function("duration", [("text", "moongate.Duration")], "number", "A duration in seconds, for sums with f.now and the ages."),
    Function(
      "hour", [("seconds", "integer"), ("zone", "string")], "integer", "The hour of the day (0 to 23) in a time zone such as \"Asia/Kolkata\"."),
  ]

  /// The parts of Lua's own base library that there are.
  private static let base: [Function] = [
    Function("assert", [("value", "any"), ("message?", "any"), ("...", "any")], "any", "Raises the message where the value is false or nil."),
    Function("error", [("message", "any"), ("level?", "integer")], nil, "Raises an error: the decision is policy_error."),
    Function("ipairs", [("list", "table")], "fun(list: table, index: integer): integer, any", "Walks over a list."),
    Function("pairs", [("table", "table")], "fun(table: table, key: any): any, any", "Walks over a table, in sorted order of its keys."),
    Function("pcall", [("body", "function"), ("...", "any")], "boolean, any", "Calls and catches errors; what stops a policy cannot be caught."),
    Function("select", [("index", "integer|\"#\""), ("...", "any")], "any", "The arguments from an index on, or their number."),
    Function("tonumber", [("value", "any"), ("base?", "integer")], "number?", "The number that a text spells."),
    Function("tostring", [("value", "any")], "string", "The value as text; a table's tells no address."),
    Function("type", [("value", "any")], "string", "The name of the value's type."),
  ]

  /// The names of all globals, those of whole libraries among them.
  static let names: [String] = ["allow", "math", "string", "table"] + (constructors + helpers + base).map(\.name)

  static let declarations: [String] =
    ["---Lets through.\n---@type moongate.Decision\nallow = nil"] + (constructors + helpers + base).map(\.text)
}
