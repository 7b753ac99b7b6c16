import CLua
import Testing

/// The environment of scripts: what is available, what is not, and that no state survives a call.
@Suite struct SandboxTests {
  @Test(arguments: [
    "io", "os", "debug", "package", "require", "load", "loadstring", "loadfile", "dofile", "collectgarbage",
    "coroutine", "setmetatable",
    "getmetatable", "rawset", "rawget", "rawequal", "rawlen", "xpcall", "print", "next", "_G", "_VERSION", "utf8",
    "warn", "_moongate_at",
    "math.random", "math.randomseed", "string.dump", "string.pack", "table.foo", "('x').nothing",
  ]) func isNotThere(_ name: String) throws {
    guard case .failed(let message, line: 2) = try Script.outcome(of: "local x = \(name) return allow") else {
      Issue.record("\(name) is offered")
      return
    }
    #expect(message.contains("not offered") || message.contains("unknown name"))
  }

  @Test(arguments: [
    ("return strng", "unknown name `strng`; did you mean `string`?"),
    ("return string.uper('x')", "`string.uper` is not offered; did you mean `upper`?"),
    ("return dney 'x'", "unknown name `dney`; did you mean `deny`?"),
    ("return f.phone.contry", "unknown fact `f.phone.contry`; did you mean `country`?"),
    ("return f.phnoe", "unknown fact `f.phnoe`; did you mean `phone`?"),
    ("return f[1]", "unknown fact `f.1`; available: `client`, `flow`, `now` and `phone`"),
    ("return f.client.country", "unknown fact `f.client.country`; available: `ip` and `new_device`"),
    ("x = 1", "globals are read-only: write `local x = …`"),
    ("_ENV.x = 1", "globals are read-only: write `local x = …`"),
    ("string.upper = 1", "this is read-only: a call cannot store anything for the next one"),
    ("f.now = 1", "facts are read-only"),
    ("f.phone.country = 1", "facts are read-only"),
    ("f.flow.passed.pin = true", "facts are read-only"),
    ("table.insert(math, 1)", "this is read-only: a call cannot store anything for the next one"),
    ("deny(1)", "deny takes a string, as in deny \"…\""),
    ("return 1 + '2'", "attempt to perform arithmetic on a string value (constant '2')"),
    ("error('boom')", "boom"),
    ("error('boom', 0)", "boom"),
    ("error({})", "an error was raised with a table as its message"),
    ("error()", "an error was raised with a nil as its message"),
    ("local x = nil; return x.y", "attempt to index a nil value (local 'x')"),
    ("return cidr('10.0.0.0', '10.0.0.1')", "cidr: `10.0.0.0` is not an address block such as 10.0.0.0/8"),
    ("return duration '90'", "`90` is not a duration such as \"90s\", \"10m\", \"1h30m\" or \"7d\""),
    ("for k in pairs({[{}] = 1}) do end", "keys of type table have no order: use strings, numbers or booleans"),
  ]) func reportsTheMistake(_ body: String, _ message: String) throws {
    #expect(try Script.outcome(of: body) == .failed(message, line: 2))
  }

  @Test(
    arguments: [
      ("return allow", .allow),
      ("return deny 'not_here'", .deny("not_here")),
      ("return require_also 'pin'", .requireAlso("pin")),
      ("return nil", .null),
      ("return {}", .other("table")),
      ("return pairs", .other("function")),
      ("return f", .other("userdata")),
      (
        "return tostring({}) .. tostring(print or 1)",
        .failed("`print` is not offered: a policy has no output; the reason of deny is logged", line: 2)
      ),
      (
        "return tostring({}) .. tostring(pairs) .. tostring(function() end) .. tostring(f) .. tostring(allow)",
        .text("tablefunctionfunctiontableallow")
      ),
      (
        "return string.format('%s %s %5.1f|%03d|%-4s|%x', {}, pairs, 1.25, 7, 'ab', 255)",
        .text("table function   1.2|007|ab  |ff")
      ),
      (
        "local r = {} for k in pairs({b = 1, a = 1, [10] = 1, [2] = 1, [1.5] = 1, [true] = 1}) do r[#r + 1] = tostring(k) end return table.concat(r, ' ')",
        .text("true 1.5 2 10 a b")
      ),
      ("local t = {1, 2, 3} local n = 0 for i, v in ipairs(t) do n = n + i * v end return n", .integer(14)),
      ("local it, s = pairs({a = 1, b = 2}) return it(s, 'a')", .text("b")),
      ("return select('#', pcall(error, 'x'))", .integer(2)),
      ("return select(2, pcall(error, 'x', 0))", .text("x")),
      ("return select(-1, 1, 2, 3)", .integer(3)),
      ("return tonumber('0x10') + tonumber(' 7 ') + tonumber('ff', 16) + tonumber('-11', 2)", .integer(275)),
      ("return tonumber('1e') == nil and tonumber('8', 8) == nil and tonumber({}) == nil", .flag(true)),
      ("return ('hello world'):gsub('o', '0')", .text("hell0 w0rld")),
      ("return (('hello'):gsub('l', {l = 'L'}))", .text("heLLo")),
      ("return (('hello'):gsub('', '-'))", .text("-h-e-l-l-o-")),
      ("return (('abc'):gsub('%w', '%0%0'))", .text("aabbcc")),
      ("return ('key = value'):match('^(%w+)%s*=%s*(%w+)$')", .text("key")),
      ("return (select(3, ('THE (quick) fox'):find('%((%a+)%)')))", .text("quick")),
      ("return ('[a]b'):match('[]]')", .text("]")),
      ("return ('f(a(b)c)d'):match('%b()')", .text("(a(b)c)")),
      ("return ('THE quick'):gsub('%f[%a]%a+', string.lower)", .text("the quick")),
      ("return ('abab'):match('(ab)%1')", .text("ab")),
      ("return ('abc'):find('b', 1, true)", .integer(2)),
      ("return ('abc'):find('()', 2)", .integer(2)),
      ("local s = '' for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do s = s .. k .. v end return s", .text("a1b2")),
      ("return ('x'):rep(3, ',')", .text("x,x,x")),
      (
        "return ('abc'):sub(-2) .. ('abc'):sub(2, -2) .. ('abc'):reverse() .. ('aBc'):upper() .. #'abc'",
        .text("bcbcbaABC3")
      ),
      ("return ('abc'):byte(-1) + string.char(65, 66):byte(2)", .integer(165)),
      (
        "local t = {3, 1, 2} table.sort(t) table.insert(t, 1, 0) table.insert(t, 4) table.remove(t, 2) return table.concat(t, '-')",
        .text("0-2-3-4")
      ),
      ("local t = {'b', 'a', 'c'} table.sort(t, function(a, b) return a > b end) return table.concat(t)", .text("cba")),
      ("return table.concat(table.move({1, 2, 3}, 1, 3, 2), '')", .text("1123")),
      ("return table.pack(1, nil, 3).n + select('#', table.unpack({1, 2, 3}))", .integer(6)),
      (
        "return math.floor(3.7) + math.ceil(3.2) + math.max(1, 5, 2) + math.min(4, 2) + math.abs(-3) + math.fmod(7, 4)",
        .integer(20)
      ),
      ("return math.fmod(math.mininteger, -1)", .integer(0)),
      (
        "return math.type(1) .. math.type(1.0) .. tostring(math.tointeger(3.0)) .. math.pi // 1",
        .text("integerfloat33.0")
      ),
      (
        "return cidr('10.0.0.0/8', '10.1.2.3') and not cidr('10.0.0.0/8', '11.0.0.1') and cidr('2001:db8::/33', '2001:db8:1::1') and cidr('0.0.0.0/0', '::ffff:1.2.3.4')",
        .flag(true)
      ),
      ("return not cidr('10.0.0.0/8', 'rubbish') and not cidr('::/0', '1.2.3.4')", .flag(true)),
      (
        "return glob('a.example.com', '*.example.com') and not glob('example.com', '*.example.com') and glob('', '*') and glob('abc', 'a*c')",
        .flag(true)
      ),
      (
        "return starts_with('abc', 'ab') and ends_with('abc', 'bc') and contains('abc', 'b') and not starts_with('a', 'ab')",
        .flag(true)
      ),
      ("return one_of('b', {'a', 'b'}) and not one_of('c', {'a'}) and not one_of('a', {})", .flag(true)),
      ("return duration '1h30m' + duration '7d' + duration '90s'", .integer(610_290)),
      ("goto done do return 1 end ::done:: return 2", .integer(2)),
      ("return 7 // 2 .. ' ' .. 7 / 2 .. ' ' .. 2 ^ 10 .. ' ' .. (5 & 3)", .text("3 3.5 1024.0 1")),
      ("return type(f) .. type(f.phone) .. type(f.flow.passed)", .text("tabletabletable")),
    ] as [(String, Script.Outcome)]) func works(_ body: String, _ outcome: Script.Outcome) throws
  {
    #expect(try Script.outcome(of: body) == outcome)
  }

  @Test(
    arguments: [
      ("local n = 0", "n = n + 1 return n", .integer(1)),
      ("local t = {1, 2} local list = {t = t}", "return #list.t + list.t[1]", .integer(3)),
      ("local t = {}", "t.x = 1", .failed("this is read-only: a call cannot store anything for the next one", line: 2)),
      (
        "local t = {inner = {}}", "t.inner.x = 1",
        .failed("this is read-only: a call cannot store anything for the next one", line: 2)
      ),
      (
        "local t = {inner = {}}", "table.insert(t.inner, 1)",
        .failed("this is read-only: a call cannot store anything for the next one", line: 2)
      ),
      ("local t = {}", "local seen = t.x t = {x = 1} return seen", .null),
      ("local n = 0 local function count() n = n + 1 return n end", "count() return count()", .integer(2)),
      ("local box = {f = nil} local n = 0 box.f = function() n = n + 1 return n end", "return box.f()", .integer(1)),
      ("local t = {b = 1, a = 2}", "local s = '' for k, v in pairs(t) do s = s .. k .. v end return s", .text("a2b1")),
      (
        "local t = {5, 6}",
        "local s = 0 for i, v in ipairs(t) do s = s + v end return s + #t + select('#', table.unpack(t))", .integer(15)
      ),
      ("local it, s, k = pairs({a = 1, b = 2})", "k = it(s, k) return k", .text("a")),
    ] as [(String, String, Script.Outcome)]) func leavesNothingForTheNextCall(
      _ prelude: String, _ body: String, _ outcome: Script.Outcome
    ) throws
  {
    let script = try Script(body, prelude: prelude)
    for _ in 0..<3 { #expect(script.run() == outcome) }
  }

  @Test func putsUpvaluesBackAfterAKill() throws {
    let script = try Script("if n == 5 then return n end n = 5 while true do end", prelude: "local n = 0")
    for _ in 0..<3 { #expect(script.run() == .killed(CLUA_KILLED_STEPS, line: 2)) }
  }

  @Test func statefulIteratorCannotBeKeptBetweenCalls() throws {
    let outcome = try Script.outcome(of: "return it()", prelude: "local it = ('abc'):gmatch('.')")
    #expect(
      outcome == .failed("an iterator of gmatch cannot be kept between calls: call gmatch where it is used", line: 0))
  }

  @Test func precompiledCodeIsRefused() throws {
    let script = try Script("return allow")
    script.load("\u{1B}Lua")
    guard case .failed(let message, _) = script.run() else {
      Issue.record("precompiled code was accepted")
      return
    }
    #expect(message.contains("attempt to load a binary chunk"))
  }

  @Test func aChunkThatLoopsIsStopped() throws {
    let script = try Script("return allow")
    script.load("while true do end")
    #expect(script.run() == .killed(CLUA_KILLED_STEPS, line: 1))
  }

  @Test(arguments: [
    "local t = {} t.t = t return t", "local t = {} for i = 1, 300000 do t[i] = i end return t",
    "local t = {} for i = 1, 100000 do t = {t} end return function() return t end",
    String(repeating: "(", count: 100_000), "return " + String(repeating: "{", count: 100_000),
    String(repeating: "local x = 1 ", count: 300),
  ]) func isRefusedAtLoad(_ source: String) throws {
    let script = try Script("return allow")
    script.load(source)
    guard case .failed = script.run() else {
      Issue.record("\(script.run())")
      return
    }
  }

  @Test(arguments: [
    ("90s", 90_000), ("10m", 600_000), ("1h30m", 5_400_000), ("7d", 604_800_000), ("0s", 0), ("500ms", 500),
    ("1m500ms", 60_500),
  ])
  func readsDurations(_ text: String, _ expected: Int64) {
    var milliseconds: Int64 = -1
    #expect(clua_parse_duration(text, text.utf8.count, &milliseconds))
    #expect(milliseconds == expected)
  }

  @Test(arguments: [
    "", "90", "s", "1x", "1m1h", "1m1m", "-1s", "1 s", "1.5h", "99999999999999999999s", "40000d", "1S", "1s ",
  ])
  func refusesDurations(_ text: String) {
    var milliseconds: Int64 = 0
    #expect(!clua_parse_duration(text, text.utf8.count, &milliseconds))
  }

  @Test(arguments: [
    ("windw", "window", 1), ("ab", "ba", 1), ("", "abc", 3), ("kitten", "sitting", 3), ("max", "max", 0),
  ])
  func countsTypingErrors(_ left: String, _ right: String, _ distance: Int32) {
    #expect(clua_typing_distance(left, left.utf8.count, right, right.utf8.count) == distance)
  }
}
