import CLua

/// Runs the body of a function in its own state, like a function of a policy.
final class Script {
  enum Outcome: Equatable, CustomStringConvertible {
    case allow, deny(String), requireAlso(String)
    case null, flag(Bool), integer(Int64), number(Double), text(String)
    case other(String)
    case failed(String, line: Int)
    case killed(clua_status, line: Int)

    var description: String {
      switch self {
      case .allow: "allow"
      case .deny(let reason): "deny \(reason)"
      case .requireAlso(let provider): "require_also \(provider)"
      case .null: "nil"
      case .flag(let flag): "\(flag)"
      case .integer(let integer): "\(integer)"
      case .number(let number): "\(number)"
      case .text(let text): "\"\(text)\""
      case .other(let type): "a \(type)"
      case .failed(let message, let line): "line \(line): \(message)"
      case .killed(let status, let line): "line \(line): killed (\(status.rawValue))"
      }
    }

    var isKilled: Bool { if case .killed = self { true } else { false } }
  }

  static let decisionBudget = clua_budget(steps: 100_000, bytes: 1 << 20, nanoseconds: 10_000_000)

  let state: OpaquePointer
  private(set) var function: Int32 = -1
  private(set) var facts: Int32 = -1
  /// The outcome of loading, if it failed.
  private(set) var loadFailure: Outcome?

  /// - Parameters:
  /// - body: the text between `function(f)` and `end`, from line 2 on.
  /// - prelude: the text before the function, on line 1.
  init(_ body: String, prelude: String = "", callbacks: clua_callbacks = clua_callbacks()) throws {
    var callbacks = callbacks
    guard let state = clua_new(&callbacks) else { throw NoState() }
    self.state = state
    state.add([
      "policy": CLUA_TAKES_NAME, "gateway": CLUA_TAKES_TABLE, "routes": CLUA_TAKES_TABLE, "any_of": CLUA_TAKES_TABLE,
      "env": CLUA_TAKES_TEXT,
    ])
    state.add(hint: "a policy has no output; the reason of deny is logged", for: "print")
    facts = clua_facts_new(state)
    for (slot, path) in ["now", "phone.country", "client.ip", "client.new_device"].enumerated() {
      _ = clua_facts_add(state, facts, path, Int32(slot), CLUA_FACT_VALUE)
    }
    _ = clua_facts_add(state, facts, "flow.passed", 100, CLUA_FACT_SET)
    load("\(prelude) return policy 'x' { send = function(f)\n\(body)\nend }")
  }

  struct NoState: Error {}

  deinit { clua_free(state) }

  func load(_ source: String) {
    var budget = clua_budget(steps: 10_000_000, bytes: 64 << 20, nanoseconds: 2_000_000_000)
    let status = source.utf8CString.withUnsafeBufferPointer {
      clua_load(state, "policies/x.lua", $0.baseAddress, $0.count - 1, &budget, false)
    }
    guard status == CLUA_OK else { return loadFailure = failure(status) }
    loadFailure = nil
    for index in 0..<clua_tree_count(state) where clua_tree_nodes(state)[index].function >= 0 {
      function = clua_tree_nodes(state)[index].function
    }
  }

  func run(_ budget: clua_budget = Script.decisionBudget) -> Outcome {
    if let loadFailure { return loadFailure }
    var budget = budget
    var value = clua_value()
    let status = clua_call(state, function, facts, &budget, &value)
    guard status == CLUA_OK else { return failure(status) }
    let text =
      value.bytes.map { String(decoding: UnsafeRawBufferPointer(start: $0, count: value.length), as: UTF8.self) } ?? ""
    return switch value.kind {
    case CLUA_ALLOW: .allow
    case CLUA_DENY: .deny(text)
    case CLUA_REQUIRE_ALSO: .requireAlso(text)
    case CLUA_NIL: .null
    case CLUA_BOOLEAN: .flag(value.boolean)
    case CLUA_INTEGER: .integer(value.integer)
    case CLUA_NUMBER: .number(value.number)
    case CLUA_STRING: .text(text)
    default: .other(text)
    }
  }

  private func failure(_ status: clua_status) -> Outcome {
    switch status {
    case CLUA_KILLED_STEPS, CLUA_KILLED_MEMORY, CLUA_KILLED_TIME: .killed(status, line: Int(clua_line(state)))
    default: .failed(String(cString: clua_message(state)), line: Int(clua_line(state)))
    }
  }

  static func outcome(of body: String, prelude: String = "") throws -> Outcome {
    try Script(body, prelude: prelude).run()
  }
}
