import CLua
import MoongateSDK

/// A value for a function, as CLua takes it: a tree in pre-order, and the text of its names and texts.
struct LuaArgument {
  private(set) var nodes: [clua_node] = []
  private(set) var text: [UInt8] = []
  /// The texts that may be personal.
  private var personal: Set<String> = []

  init(_ members: [String: JSONClaim]) { add(.object(members)) }

  /// - Returns: the number of the value's node.
  @discardableResult private mutating func add(_ value: JSONClaim) -> Int {
    let at = nodes.count
    var node = clua_node()
    node.mark = -1
    node.function = -1
    switch value {
    case .null: node.kind = CLUA_NIL
    case .flag(let flag):
      node.kind = CLUA_BOOLEAN
      node.boolean = flag
    case .number(let number):
      if let integer = Int64(exactly: number) {
        node.kind = CLUA_INTEGER
        node.integer = integer
      } else {
        node.kind = CLUA_NUMBER
        node.number = number
      }
    case .integer(let digits):
      if let integer = Int64(digits) {
        node.kind = CLUA_INTEGER
        node.integer = integer
      } else {
        node.kind = CLUA_NUMBER
        node.number = value.number ?? 0
      }
    case .text(let text):
      node.kind = CLUA_STRING
      (node.text_offset, node.text_length) = add(text)
      // Shorter texts are words, not names of people.
      if text.utf8.count > 3 { personal.insert(text) }
    case .list(let values):
      node.kind = CLUA_TABLE
      node.children = Int32(values.count)
    case .object(let members):
      node.kind = CLUA_TABLE
      node.children = Int32(members.count)
    }
    nodes.append(node)
    if case .list(let values) = value {
      for (index, value) in values.enumerated() {
        let child = add(value)
        nodes[child].key_kind = CLUA_INTEGER
        nodes[child].key_integer = Int64(index) + 1
      }
    }
    if case .object(let members) = value {
      // Sorted, so that the same claims always cost the same.
      for (name, value) in members.sorted(by: { $0.key < $1.key }) {
        let child = add(value)
        nodes[child].key_kind = CLUA_STRING
        (nodes[child].key_offset, nodes[child].key_length) = add(name)
      }
    }
    return at
  }

  private mutating func add(_ text: String) -> (offset: Int, length: Int) {
    let offset = self.text.count
    self.text += Array(text.utf8)
    return (offset, self.text.count - offset)
  }

  /// The message without the texts of the argument.
  ///
  /// Attack (or accident): `error("no " .. f.claims.email)`.
  func redacted(_ message: String) -> String {
    personal.sorted { $0.utf8.count > $1.utf8.count }.reduce(message) { $0.replacing($1, with: "[redacted]") }
  }
}
