import CLua
import MoongateCore
import Testing

@testable import MoongatePolicy

/// The branches of functions.
@Suite struct BranchMapTests {
  @Test(arguments: [
    ("return function(f) if f.a then return 1 end end", ["if f.a"]),
    (
      "return function(f) if f.a and (f.b or f.c) then return 1 elseif f.d == 2 then return 2 else return 3 end end",
      ["f.a", "f.b", "if f.a and (f.b or f.c)", "if f.d == 2"]
    ),
    ("return function(f) return f.a and f.b or f.c end", ["f.a", "f.b"]),
    ("return function(f) return not f.a == f.b and f(f.c or 1, f.d and 2) end", ["not f.a == f.b", "f.c", "f.d"]),
    ("return function(f) local t = { f.a or 1, x = f.b and 2, [f.c or 3] = 4 } return t end", ["f.a", "f.b", "f.c"]),
    (
      "return function(f) for i = 1, 2 do if i then f() end end while f.x and f.y do break end end",
      ["for i = 1, 2", "if i", "f.x", "while f.x and f.y"]
    ),
    ("return function(f) repeat local x = f.a until x or f.b return end", ["x"]),
    ("return function(f) do local x = 1 end return end", []),
    ("local x = 1 and 2 if x then x = 3 end return function(f) return f.a end", []),
    (
      "return function(f)\n  if f.a -- why\n    and\n f.b\n  then return function() return f.c or 1 end end\nend",
      ["f.a", "if f.a -- why and f.b", "f.c"]
    ),
  ]) func findsEach(_ source: String, _ branches: [String]) throws {
    let map = BranchMap(Array(source.utf8), first: 0)
    #expect(map.branches.map(\.code) == branches)
    let text = String(decoding: map.instrumented, as: UTF8.self)
    #expect(throws: Never.self, "\(text)") { try LuaState().parse(map.instrumented, name: "x") }
    #expect(text.count { $0 == "\n" } == source.count { $0 == "\n" })
  }

  /// Instrumentation does not change the value of any expression with a few operands.
  @Test func changesNoMeaning() throws {
    let operands = ["a", "b", "not a", "(b and a)", "a == b", "(({ a or b })[1])", "f(a and b)", "nil", "7"]
    for first in operands {
      for second in operands {
        for third in operands {
          for (one, two) in [("and", "or"), ("or", "and"), ("and", "and"), ("or", "or")] {
            let expression = "\(first) \(one) \(second) \(two) \(third)"
            let helpers = "local function f(x) return x end"
            let body =
              "\(helpers) local function g(a, b) if \(expression) then return \(expression) end return false end"
            let calls =
              "{ "
              + ["true, true", "true, false", "false, true", "nil, 3"].map { "tostring(g(\($0)))" }.joined(
                separator: ", ") + " }"
            let source = Array("\(body) return \(calls)".utf8)
            #expect(
              try values(source, marks: false) == values(BranchMap(source, first: 0).instrumented, marks: true),
              "\(expression)")
          }
        }
      }
    }
  }

  private func values(_ source: [UInt8], marks: Bool) throws -> [String] {
    let state = try LuaState()
    try state.load(source, name: "x", marks: marks)
    guard case .table(let table) = state.tree(file: "x", map: nil).value else { return [] }
    return table.items.map(\.value.described)
  }

  /// The sides of each branch that calls have taken.
  @Test func notesTheSides() throws {
    let folder = try TestFolder([
      "policies/phone_otp.lua": """
      return policy "phone_otp" {
        send = function(f) if f.phone.country == "IN" or f.clock.suspect then return allow end return deny "no" end,
      }
      """
    ])
    let generation = try #require(try folder.generation() as? Generation)
    let index = BranchIndex(generation)
    #expect(
      index.places.map(\.branch.code) == [
        "f.phone.country == \"IN\"", "if f.phone.country == \"IN\" or f.clock.suspect",
      ])
    #expect(index.places.map(\.location.line) == [2, 2])
    let probe = try BranchProbe(generation, index)
    let send = FunctionName("policies/phone_otp.send")
    probe.follow(send, .test())
    #expect(probe.sides.prefix(2) == [2, 2])
    probe.follow(send, .test { $0.clockIsSuspect = true })
    #expect(probe.sides.prefix(2) == [2, 3])
    // Neither the text nor the globals of production functions are changed.
    #expect(
      generation.sources["policies/phone_otp.lua"].map {
        !String(decoding: $0.bytes, as: UTF8.self).contains("_moongate")
      } ?? false)
    #expect(throws: LuaState.Failure.self) {
      try LuaState().load(Array("return _moongate_took(1, 2)".utf8), name: "x", marks: false)
    }
  }
}
