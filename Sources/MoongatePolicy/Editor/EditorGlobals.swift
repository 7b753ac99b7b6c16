/// The names that every file finds, as editors are told them. CLua makes them; a test holds this list against it.
enum EditorGlobals {
  /// A function: how it is called, what it gives, and one sentence.
  struct Function {
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

    /// As a call is written, with the type of its result.
    var signature: String {
      let call = "\(name)(\(parameters.map(\.name).joined(separator: ", ")))"
      return result.map { "\(call): \($0.replacing("moongate.", with: ""))" } ?? call
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

  private static let constructors = Constructor.all.map { Function($0.name, $0.parameters, $0.result, $0.help) }

  /// What decides, and what chooses a number.
  private static let decisions: [Function] = [
    Function(
      "vary", [("lowest", "any"), ("highest", "any"), ("choose", "fun(f: moongate.PolicyFacts): any")], "moongate.Vary",
      "A number or duration that a function chooses between two bounds."),
    Function(
      "deny", [("reason", "string")], "moongate.Decision",
      "Refuses; the reason, in snake case, reaches the log and the client."),
    Function(
      "require_also", [("provider", "string")], "moongate.Decision",
      "Lets through only after this provider was passed as well."),
  ]

  private static let helpers: [Function] = [
    Function(
      "starts_with", [("text", "string"), ("start", "string")], "boolean", "Whether the text begins with another."),
    Function(
      "ends_with", [("text", "string"), ("ending", "string")], "boolean", "Whether the text ends with another."),
    Function("contains", [("text", "string"), ("part", "string")], "boolean", "Whether the text holds another."),
    Function(
      "glob", [("text", "string"), ("pattern", "string")], "boolean",
      "Whether the text fits a pattern in which * is any run of bytes."),
    Function(
      "cidr", [("block", "string"), ("address", "string")], "boolean",
      "Whether an address lies in a block such as \"10.0.0.0/8\"."),
    Function("one_of", [("value", "any"), ("list", "any[]")], "boolean", "Whether a list holds the value."),
    Function(
      "duration", [("text", "moongate.Duration")], "number", "A duration in seconds, for sums with f.now and the ages."),
    Function(
      "hour", [("seconds", "integer"), ("zone", "string")], "integer",
      "The hour of the day (0 to 23) in a time zone such as \"Asia/Kolkata\"."),
  ]

  /// The parts of Lua's own base library that there are.
  private static let base: [Function] = [
    Function(
      "assert", [("value", "any"), ("message?", "any"), ("...", "any")], "any",
      "Raises the message where the value is false or nil."),
    Function(
      "error", [("message", "any"), ("level?", "integer")], nil, "Raises an error: the decision is policy_error."),
    Function("ipairs", [("list", "table")], "fun(list: table, index: integer): integer, any", "Walks over a list."),
    Function(
      "pairs", [("table", "table")], "fun(table: table, key: any): any, any",
      "Walks over a table, in sorted order of its keys."),
    Function(
      "pcall", [("body", "function"), ("...", "any")], "boolean, any",
      "Calls and catches errors; what stops a policy cannot be caught."),
    Function(
      "select", [("index", "integer|\"#\""), ("...", "any")], "any", "The arguments from an index on, or their number."),
    Function("tonumber", [("value", "any"), ("base?", "integer")], "number?", "The number that a text spells."),
    Function("tostring", [("value", "any")], "string", "The value as text; a table's tells no address."),
    Function("type", [("value", "any")], "string", "The name of the value's type."),
  ]

  /// All of them; `allow` and the libraries are values.
  static var functions: [Function] { constructors + decisions + helpers + base }

  /// The names of all globals, those of whole libraries among them.
  static let names: [String] = ["allow", "math", "string", "table"] + functions.map(\.name)

  static let declarations: [String] =
    ["---Lets through.\n---@type moongate.Decision\nallow = nil"] + functions.map(\.text)
}
