import CLua
import MoongateCore

/// Owns a CLua state. Belongs to one thread at a time.
final class LuaState {
  /// A run that failed or was stopped.
  struct Failure: Error {
    let kind: PolicyFault.Kind
    /// The line; 0 if it is unknown.
    let line: Int
    let message: String
    /// The shared file that the line belongs to; nil: the loaded file, or the file of the called function.
    var shared: String?
  }

  let pointer: OpaquePointer

  /// The names of the shared files, in the order of their numbers.
  private let shared: [String]

  /// - Parameters:
  ///   - constructors: additional names that scripts may call with a table.
  ///   - shared: the files that scripts may include.
  /// - Throws: `Failure` if memory is exhausted.
  init(_ callbacks: clua_callbacks = clua_callbacks(), constructors: [String] = [], shared: [SharedFile] = [])
    throws(Failure)
  {
    var callbacks = callbacks
    guard let pointer = clua_new(&callbacks) else {
      throw Failure(kind: .memory, line: 0, message: "out of memory: no Lua state could be created")
    }
    self.pointer = pointer
    self.shared = shared.map(\.file)
    for file in shared {
      let number = file.bytes.withUnsafeBytes { bytes in
        clua_module_add(pointer, file.name, file.file, bytes.bindMemory(to: CChar.self).baseAddress, bytes.count)
      }
      guard number >= 0 else { throw Failure(kind: .memory, line: 0, message: "out of memory: \(file.file)") }
    }
    try add(hints: LeftOutNames.hints)
    try add(Constructor.all.map { ($0.name, $0.form.inCLua) } + constructors.map { ($0, CLUA_TAKES_TABLE) })
  }

  private func add(_ constructors: [(name: String, form: clua_form)]) throws(Failure) {
    let status = withCStrings(constructors.map(\.name)) { names in
      let list = zip(names, constructors).map { clua_constructor(name: $0, form: $1.form) }
      return clua_constructors_add(pointer, list, list.count)
    }
    if status != CLUA_OK { throw failure(status) }
  }

  private func add(hints: [(name: String, hint: String)]) throws(Failure) {
    let status = withCStrings(hints.map(\.name) + hints.map(\.hint)) { texts in
      let list = zip(texts, texts.dropFirst(hints.count)).map { clua_hint(name: $0, hint: $1) }
      return clua_hints_add(pointer, list, list.count)
    }
    if status != CLUA_OK { throw failure(status) }
  }

  /// Calls the body with the texts as C strings, which are valid until it returns.
  private func withCStrings(_ texts: [String], _ body: ([UnsafePointer<CChar>]) -> clua_status) -> clua_status {
    let texts = texts.map(\.utf8CString)
    var end = 0
    let starts = texts.map { text in
      defer { end += text.count }
      return end
    }
    return Array(texts.joined()).withUnsafeBufferPointer { bytes in
      guard let base = bytes.baseAddress else { return CLUA_OK }
      return body(starts.map { base + $0 })
    }
  }

  deinit { clua_free(pointer) }

  /// The budget for loading a file: much larger than that of a decision, but finite.
  static let loading = clua_budget(steps: 5_000_000, bytes: 64 << 20, nanoseconds: 1_000_000_000)

  /// Runs a file and reads the value that it returns.
  /// - Parameters:
  /// - name: the file name in problems.
  /// - marks: whether the text is instrumented (`SourceMap`).
  func load(_ text: [UInt8], name: String, marks: Bool) throws(Failure) {
    var budget = Self.loading
    let status = text.withUnsafeBytes { bytes in
      name.withCString {
        clua_load(pointer, $0, bytes.bindMemory(to: CChar.self).baseAddress, bytes.count, &budget, marks)
      }
    }
    if status != CLUA_OK { throw failure(status) }
  }

  /// Parses a file without running it.
  func parse(_ text: [UInt8], name: String) throws(Failure) {
    var budget = Self.loading
    let status = text.withUnsafeBytes { bytes in
      name.withCString { clua_parse(pointer, $0, bytes.bindMemory(to: CChar.self).baseAddress, bytes.count, &budget) }
    }
    if status != CLUA_OK { throw failure(status) }
  }

  /// The numbers and lines of the functions of the last load, in tree order.
  var functions: [(number: Int32, line: Int, shared: String?)] {
    guard let nodes = clua_tree_nodes(pointer) else { return [] }
    return (0..<clua_tree_count(pointer)).compactMap { index in
      let node = nodes[index]
      return node.function >= 0 ? (node.function, Int(node.line), file(numbered: node.module)) : nil
    }
  }

  /// The shared file of a number; nil for -1.
  private func file(numbered number: Int32) -> String? {
    shared.indices.contains(Int(number)) ? shared[Int(number)] : nil
  }

  /// The result of the last load as values.
  func tree(file: String, map: SourceMap?) -> LuaNode {
    guard let nodes = clua_tree_nodes(pointer), clua_tree_count(pointer) > 0 else {
      return LuaNode(value: .null, location: SourceLocation(file: file, line: 0))
    }
    var reader = TreeReader(
      file: file, shared: shared, nodes: UnsafeBufferPointer(start: nodes, count: clua_tree_count(pointer)),
      text: clua_tree_text(pointer), map: map)
    return reader.read(line: 1)
  }

  /// Calls a function that a load has kept, with one value.
  /// - Parameter file: the function's file, for the locations in the result.
  func apply(_ function: Int32, to argument: LuaArgument, _ budget: clua_budget, file: String) throws(Failure)
    -> LuaNode
  {
    var budget = budget
    let status = argument.nodes.withUnsafeBufferPointer { nodes in
      argument.text.withUnsafeBufferPointer { text in
        text.withMemoryRebound(to: CChar.self) {
          clua_apply(pointer, function, nodes.baseAddress, nodes.count, $0.baseAddress, &budget)
        }
      }
    }
    if status != CLUA_OK { throw failure(status) }
    return tree(file: file, map: nil)
  }

  func failure(_ status: clua_status) -> Failure {
    let kind: PolicyFault.Kind =
      switch status {
      case CLUA_KILLED_STEPS: .steps
      case CLUA_KILLED_MEMORY, CLUA_NO_MEMORY: .memory
      case CLUA_KILLED_TIME: .time
      default: .error
      }
    return Failure(
      kind: kind, line: Int(clua_line(pointer)), message: String(cString: clua_message(pointer)),
      shared: file(numbered: clua_line_module(pointer)))
  }
}

/// Converts the flat tree of CLua into values. CLua refuses trees deeper than 32, which bounds the recursion.
private struct TreeReader {
  let file: String
  let shared: [String]
  let nodes: UnsafeBufferPointer<clua_node>
  let text: UnsafePointer<CChar>?
  let map: SourceMap?
  var next = 0

  private func string(_ offset: Int, _ length: Int) -> String {
    guard length > 0, let text else { return "" }
    return String(decoding: UnsafeRawBufferPointer(start: text + offset, count: length), as: UTF8.self)
  }

  /// - Parameter line: the line of the field that contains the value.
  mutating func read(line: Int) -> LuaNode {
    let node = nodes[next]
    next += 1
    let value: LuaValue
    switch node.kind {
    case CLUA_NIL: value = .null
    case CLUA_BOOLEAN: value = .flag(node.boolean)
    case CLUA_INTEGER: value = .integer(node.integer)
    case CLUA_NUMBER: value = .number(node.number)
    case CLUA_STRING: value = .text(string(node.text_offset, node.text_length))
    case CLUA_FUNCTION:
      let module = Int(node.module)
      value = .function(
        LuaFunction(
          file: file, number: node.function, line: Int(node.line),
          shared: shared.indices.contains(module) ? shared[module] : nil))
    case CLUA_TABLE: value = .table(table(node, line: line))
    case CLUA_TAGGED:
      var arguments: [LuaNode] = []
      for _ in 0..<node.children { arguments.append(read(line: node.line > 0 ? Int(node.line) : line)) }
      value = .tagged(string(node.text_offset, node.text_length), arguments)
    case CLUA_DENY:
      var arguments: [LuaNode] = []
      for _ in 0..<node.children { arguments.append(read(line: line)) }
      if case .text(let reason)? = arguments.first?.value { value = .denied(reason) } else { value = .other("`deny`") }
    case CLUA_ALLOW, CLUA_REQUIRE_ALSO:
      for _ in 0..<node.children { _ = read(line: line) }
      value = .other("`\(string(node.text_offset, node.text_length))`")
    default: value = .other("a " + string(node.text_offset, node.text_length))
    }
    return LuaNode(value: value, location: SourceLocation(file: file, line: line))
  }

  private mutating func table(_ node: clua_node, line: Int) -> LuaTable {
    var table = LuaTable()
    let constructor = map.flatMap { map in
      node.mark >= 0 && Int(node.mark) < map.constructors.count ? map.constructors[Int(node.mark)] : nil
    }
    for _ in 0..<node.children {
      let child = nodes[next]
      switch child.key_kind {
      case CLUA_STRING:
        let name = string(child.key_offset, child.key_length)
        table.fields[name] = read(line: constructor?.line(of: name) ?? line)
      case CLUA_INTEGER where child.key_integer == Int64(table.items.count) + 1:
        table.items.append(read(line: constructor?.line(ofItem: child.key_integer) ?? line))
      case CLUA_INTEGER:
        table.otherKeys.append(
          ("[\(child.key_integer)]", read(line: constructor?.line(ofItem: child.key_integer) ?? line)))
      default:
        table.otherKeys.append(("a key that is neither a name nor a number", read(line: constructor?.line ?? line)))
      }
    }
    return table
  }
}

extension Constructor.Form {
  fileprivate var inCLua: clua_form {
    switch self {
    case .table: CLUA_TAKES_TABLE
    case .text: CLUA_TAKES_TEXT
    case .textOrTable: CLUA_TAKES_TEXT_OR_TABLE
    case .nothing: CLUA_TAKES_NOTHING
    case .tableOrNothing: CLUA_TAKES_TABLE_OR_NOTHING
    case .name: CLUA_TAKES_NAME
    case .tableOrName: CLUA_TAKES_TABLE_OR_NAME
    case .boundsAndFunction: CLUA_TAKES_BOUNDS_AND_FUNCTION
    }
  }
}
