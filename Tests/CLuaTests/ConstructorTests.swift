import CLua
import Testing

/// Constructors that a state is given besides the usual ones.
@Suite struct ConstructorTests {
  /// The name of the value that a text returns, or the error.
  private static func value(of text: String, constructors: [String], marks: Bool = false) throws -> String {
    var callbacks = clua_callbacks()
    let state = try #require(clua_new(&callbacks))
    defer { clua_free(state) }
    for name in constructors { #expect(clua_constructor_add(state, name) == CLUA_OK) }
    var budget = clua_budget(steps: 1_000_000, bytes: 1 << 20, nanoseconds: 1_000_000_000)
    let status = text.utf8CString.withUnsafeBufferPointer { clua_load(state, "x.lua", $0.baseAddress, $0.count - 1, &budget, marks) }
    guard status == CLUA_OK else { return String(cString: clua_message(state)) }
    let root = try #require(clua_tree_nodes(state)).pointee
    guard root.kind == CLUA_TAGGED else { return "kind \(root.kind.rawValue)" }
    let bytes = UnsafeRawBufferPointer(start: clua_tree_text(state) + root.text_offset, count: root.text_length)
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test(arguments: [false, true]) func makesAValueOfItsName(_ marks: Bool) throws {
    #expect(try Self.value(of: "return pigeon { a = 1 }", constructors: ["pigeon"], marks: marks) == "pigeon")
    #expect(try Self.value(of: "return pigeon 'x'", constructors: ["pigeon"], marks: marks) == "pigeon takes a table, as in pigeon { … }")
    #expect(try Self.value(of: "return pigeo {}", constructors: ["pigeon"], marks: marks) == "unknown name `pigeo`; did you mean `pigeon`?")
    #expect(try Self.value(of: "return pigeon {}", constructors: [], marks: marks).hasPrefix("unknown name `pigeon`"))
  }

  /// Longer texts are no shared strings of Lua's: the name must not be collected while a function holds it.
  @Test func aLongNameLives() throws {
    let name = String(repeating: "a", count: 48)
    let text = "local garbage = {} for i = 1, 1000 do garbage[i] = ('x'):rep(i % 50) end garbage = nil return \(name) {}"
    #expect(try Self.value(of: text, constructors: [name]) == name)
  }

  /// Attack: a provider that is called `env` or `file` reads the operator's secrets as its settings.
  @Test(arguments: ["env", "file", "string", "pairs", "gateway"]) func aGlobalKeepsItsMeaning(_ name: String) throws {
    let before = try Self.value(of: "return \(name) { x = 1 }", constructors: [])
    #expect(try Self.value(of: "return \(name) { x = 1 }", constructors: [name]) == before)
  }
}
