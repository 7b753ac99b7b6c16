import CLua
import Testing

extension OpaquePointer {
  /// Registers constructors in the state, one after the other.
  func add(_ constructors: KeyValuePairs<String, clua_form>) {
    for (name, form) in constructors {
      let status = name.withCString { name in
        var one = clua_constructor(name: name, form: form)
        return clua_constructors_add(self, &one, 1)
      }
      #expect(status == CLUA_OK)
    }
  }

  /// Registers what to use instead of a name that is left out.
  func add(hint: String, for name: String) {
    let status = name.withCString { name in
      hint.withCString { hint in
        var one = clua_hint(name: name, hint: hint)
        return clua_hints_add(self, &one, 1)
      }
    }
    #expect(status == CLUA_OK)
  }
}

/// The constructors of a state.
@Suite struct ConstructorTests {
  /// The name of the value that a text returns, or the error.
  private static func value(of text: String, constructors: KeyValuePairs<String, clua_form>, marks: Bool = false) throws
    -> String
  {
    var callbacks = clua_callbacks()
    let state = try #require(clua_new(&callbacks))
    defer { clua_free(state) }
    state.add(constructors)
    var budget = clua_budget(steps: 1_000_000, bytes: 1 << 20, nanoseconds: 1_000_000_000)
    let status = text.utf8CString.withUnsafeBufferPointer {
      clua_load(state, "x.lua", $0.baseAddress, $0.count - 1, &budget, marks)
    }
    guard status == CLUA_OK else { return String(cString: clua_message(state)) }
    let root = try #require(clua_tree_nodes(state)).pointee
    guard root.kind == CLUA_TAGGED else { return "kind \(root.kind.rawValue)" }
    let bytes = UnsafeRawBufferPointer(start: clua_tree_text(state) + root.text_offset, count: root.text_length)
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test(arguments: [false, true]) func constructorMakesAValueOfItsName(_ marks: Bool) throws {
    #expect(
      try Self.value(of: "return pigeon { a = 1 }", constructors: ["pigeon": CLUA_TAKES_TABLE], marks: marks)
        == "pigeon")
    #expect(
      try Self.value(of: "return pigeon 'x'", constructors: ["pigeon": CLUA_TAKES_TABLE], marks: marks)
        == "pigeon takes a table, as in pigeon { … }")
    #expect(
      try Self.value(of: "return pigeo {}", constructors: ["pigeon": CLUA_TAKES_TABLE], marks: marks)
        == "unknown name `pigeo`; did you mean `pigeon`?")
    #expect(try Self.value(of: "return pigeon {}", constructors: [:], marks: marks).hasPrefix("unknown name `pigeon`"))
  }

  /// Lua does not intern longer names. The name must not be collected while a function uses it.
  @Test func longNamesAreNotCollected() throws {
    let name = String(repeating: "a", count: 48)
    let text =
      "local garbage = {} for i = 1, 1000 do garbage[i] = ('x'):rep(i % 50) end garbage = nil return \(name) {}"
    #expect(try Self.value(of: text, constructors: [name: CLUA_TAKES_TABLE]) == name)
  }

  /// Each form with valid and invalid arguments.
  @Test(arguments: [
    (CLUA_TAKES_TABLE, "{}", "'x'", "word takes a table, as in word { … }"),
    (CLUA_TAKES_TEXT, "'x'", "{}", "word takes a string, as in word \"…\""),
    (CLUA_TAKES_TEXT_OR_TABLE, "'x'", "(1)", "word takes a string or a table, as in word \"…\""),
    (CLUA_TAKES_TEXT_OR_TABLE, "{}", "()", "word takes a string or a table, as in word \"…\""),
    (CLUA_TAKES_NOTHING, "()", "(1)", "word takes nothing, as in word()"),
    (CLUA_TAKES_TABLE_OR_NOTHING, "()", "'x'", "word takes a table, as in word { … }"),
    (CLUA_TAKES_TABLE_OR_NOTHING, "{}", "(1)", "word takes a table, as in word { … }"),
    (CLUA_TAKES_NAME, "'x'", "{}", "word takes a name first, as in word \"…\" { … }"),
    (
      CLUA_TAKES_TABLE_OR_NAME, "{}", "(1)",
      "word takes a table, as in word { … }, or a name first, as in word \"…\" { … }"
    ),
    (
      CLUA_TAKES_TABLE_OR_NAME, "'x' {}", "'x' 'y'", "word takes a table after its name, as in word \"…\" { … }"
    ),
    (CLUA_TAKES_NAME, "'x' {}", "'x' 'y'", "word takes a table after its name, as in word \"…\" { … }"),
    (
      CLUA_TAKES_BOUNDS_AND_FUNCTION, "(1, 2, function() end)", "(1, 2)",
      "word takes the lowest value, the highest, and a function"
    ),
  ]) func acceptsOnlyItsForm(_ form: clua_form, _ right: String, _ wrong: String, _ refusal: String) throws {
    #expect(try Self.value(of: "return word \(right)", constructors: ["word": form]) == "word")
    #expect(try Self.value(of: "return word \(wrong)", constructors: ["word": form]) == refusal)
  }

  /// Attack: a provider with the name `env` or `file` receives the operator's secrets as its settings.
  @Test(arguments: ["deny", "allow", "string", "pairs"]) func constructorsDoNotReplaceGlobals(_ name: String) throws {
    let before = try Self.value(of: "return \(name) { x = 1 }", constructors: [:])
    #expect(try Self.value(of: "return \(name) { x = 1 }", constructors: [name: CLUA_TAKES_TABLE]) == before)
  }

  /// Attack: the same with a constructor that was registered before.
  @Test func firstRegistrationOfANameWins() throws {
    #expect(
      try Self.value(of: "return env { x = 1 }", constructors: ["env": CLUA_TAKES_TEXT, "env": CLUA_TAKES_TABLE])
        == "env takes a string, as in env \"…\"")
  }
}
