/// The global names that configuration files may use, with their help. CLua defines the globals; a test compares this
/// list with them.
enum LuaGlobals {
  /// A function with its parameters, result and help text.
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

    /// The call with the type of its result.
    var signature: String {
      let call = "\(name)(\(parameters.map(\.name).joined(separator: ", ")))"
      return result.map { "\(call): \($0.replacing("moongate.", with: ""))" } ?? call
    }
  }

  private static let constructors = Constructor.all.map { Function($0.name, $0.parameters, $0.result, $0.help) }

  /// The functions that make decisions.
  private static let decisions: [Function] = [
    Function(
      "deny", [("reason", "string")], "moongate.Decision",
      "Denies the action or request. The reason, in snake case, is logged and sent to the client."),
    Function(
      "require_also", [("provider", "string")], "moongate.Decision",
      "Allows the action only after this provider has been passed as well."),
  ]

  private static let helpers: [Function] = [
    Function(
      "starts_with", [("text", "string"), ("start", "string")], "boolean", "Whether the text begins with `start`."),
    Function(
      "ends_with", [("text", "string"), ("ending", "string")], "boolean", "Whether the text ends with `ending`."),
    Function("contains", [("text", "string"), ("part", "string")], "boolean", "Whether the text contains `part`."),
    Function(
      "glob", [("text", "string"), ("pattern", "string")], "boolean",
      "Whether the text matches a pattern, in which * matches any bytes."),
    Function(
      "cidr", [("block", "string"), ("address", "string")], "boolean",
      "Whether an address is in a block such as \"10.0.0.0/8\"."),
    Function("one_of", [("value", "any"), ("list", "any[]")], "boolean", "Whether the list contains the value."),
    Function(
      "duration", [("text", "moongate.Duration")], "number",
      "A duration in seconds, for calculations with f.now and ages."),
    Function(
      "include", [("name", "string")], "any",
      "The table or function that shared/NAME.lua returns. Call it outside of functions."),
    Function(
      "hour", [("seconds", "integer"), ("zone", "string")], "integer",
      "The hour of the day (0 to 23) in a time zone such as \"Asia/Kolkata\"."),
  ]

  /// The functions of Lua's base library that the sandbox has.
  private static let base: [Function] = [
    Function(
      "assert", [("value", "any"), ("message?", "any"), ("...", "any")], "any",
      "Raises the message as an error if the value is false or nil."),
    Function(
      "error", [("message", "any"), ("level?", "integer")], nil, "Raises an error; the decision becomes policy_error."),
    Function("ipairs", [("list", "table")], "fun(list: table, index: integer): integer, any", "Iterates over a list."),
    Function(
      "pairs", [("table", "table")], "fun(table: table, key: any): any, any",
      "Iterates over a table in the order of its sorted keys."),
    Function(
      "pcall", [("body", "function"), ("...", "any")], "boolean, any",
      "Calls a function and catches its errors, except exceeded budgets."),
    Function(
      "select", [("index", "integer|\"#\""), ("...", "any")], "any", "The arguments from an index on, or their count."),
    Function("tonumber", [("value", "any"), ("base?", "integer")], "number?", "The number that a text represents."),
    Function("tostring", [("value", "any")], "string", "The value as text, without memory addresses."),
    Function("type", [("value", "any")], "string", "The name of the value's type."),
  ]

  /// All functions. `allow` and the libraries are values, so they are not among them.
  static var functions: [Function] { constructors + decisions + helpers + base }

  /// The names of all globals, including those of libraries.
  static let names: [String] = ["allow", "math", "string", "table"] + functions.map(\.name)
}
