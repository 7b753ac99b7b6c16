import CLua
import Testing

/// Scripts that exceed the budget: each is stopped in time, cannot catch this, and the state stays usable.
@Suite struct KillTests {
  static let scripts: [String] = [
    "while true do end",
    "repeat until false",
    "::again:: goto again",
    "for i = 1, math.maxinteger do end",
    "local function g() return g() end return g()",
    "local function g() g() return 1 end return g()",
    "string.rep('', math.maxinteger) return allow",
    "string.rep('ab', math.maxinteger) return allow",
    "('x'):rep(1 << 40) return allow",
    "table.move({}, 1, math.maxinteger - 1, 2) return allow",
    "table.move({}, math.mininteger, math.maxinteger, 1) return allow",
    "return ('a'):rep(30):find(('a?'):rep(30) .. ('a'):rep(30)) and allow",
    "return ('a'):rep(3000):find('.-.-.-.-.-b') and allow",
    "return ('a'):rep(3000):match('.*.*.*.*.*b') and allow",
    "return (('a'):rep(3000):gsub('.-.-.-.-b', '')) and allow",
    "for w in ('a'):rep(3000):gmatch('.-.-.-.-b') do end return allow",
    "local n = ('a'):rep(100000) .. 'b' return ('a'):rep(200000):find(n, 1, true) and allow",
    "local n = ('a'):rep(100000) .. 'b' return contains(('a'):rep(200000), n) and allow",
    "return ('('):rep(60000):find('%b()') and allow",
    "return glob(('a'):rep(20000), '*' .. ('a'):rep(10000) .. 'b') and allow",
    "local t = {} for i = 1, 100 do t[i] = i end table.sort(t, function() while true do end end) return allow",
    "local t = {} for i = 1, 5000 do t[i] = i % 7 end table.sort(t, function(a, b) return true end) return allow",
    "return (('aaa'):gsub('a', function() while true do end end)) and allow",
    "while true do pcall(function() while true do end end) end",
    "local function g() pcall(g) pcall(g) end g() return allow",
    "while true do pcall(error, 'x') end",
    "local t = {} while true do pcall(function() while true do t[#t + 1] = {} end end) end",
    "local t = {} while true do local ok = pcall(function() t[#t + 1] = ('x'):rep(1000) .. #t end) end",
    "local s = 'x' while true do s = s .. s end",
    "local s = 'x' while true do pcall(function() s = s .. s end) end",
    "local t = {} for i = 1, math.maxinteger do t[i] = i end return allow",
    "local t = {} for i = 1, math.maxinteger do t['k' .. i] = i end return allow",
    "local f = function() end while true do local old = f f = function() return old() end end",
    "local a, b = ('a'):rep(200000), ('a'):rep(200000) .. '' while true do local c = a == b end",
    "local a, b = ('a'):rep(150000) .. 1, ('a'):rep(150000) .. 2 while true do local c = a < b end",
    "local t = {} for i = 1, 2000 do t[i] = i end while true do for k in pairs(t) do end end",
    "local t = {1, 2, 3} while true do table.insert(t, 1, 0) end",
    "return select('#', table.unpack({}, 1, 9000)) and (function(...) while true do local n = select('#', ...) end end)()",
    "while true do string.format('%99.99f', 1e300) end",
    "while true do tostring(1.5) end",
    "local x <close> = nil while true do end",
    "while true do local ok, e = pcall(string.rep, 'x', -1, {}) end",
  ]

  /// Attack: a function of a policy returns a large table, and the state keeps a copy outside the budget. Only a
  /// function that may return a table has its result kept.
  @Test func tableIsKeptOnlyWhereItIsAsked() throws {
    let script = try Script("local t = {} for i = 1, 1000 do t[i] = 'x' end return t")
    let loaded = clua_tree_count(script.state)
    #expect(script.run() == .other("table"))
    #expect(clua_tree_count(script.state) == loaded)
    var (budget, value) = (Script.decisionBudget, clua_value())
    #expect(clua_call_for_table(script.state, script.function, script.facts, &budget, &value) == CLUA_OK)
    #expect(value.kind == CLUA_TABLE && clua_tree_count(script.state) > 1000)
  }

  @Test(arguments: scripts) func isStoppedAndTheNextCallIsRight(_ body: String) throws {
    let script = try Script(body)
    let clock = ContinuousClock()
    // The faster of two runs, because other tests use the processors too.
    var fastest = Duration.seconds(60)
    for _ in 0..<2 {
      let start = clock.now
      let outcome = script.run()
      fastest = min(fastest, clock.now - start)
      #expect(outcome.isKilled, "\(outcome)")
      if case .killed(_, let line) = outcome { #expect(line == 2) }
    }
    #expect(fastest < .milliseconds(60))
    script.load(
      "return policy 'x' { send = function(f) local t = {} for i = 1, 100 do t[i] = 'v' .. i end return deny(t[100]) end }"
    )
    #expect(script.run() == .deny("v100"))
    #expect(clua_bytes_held(script.state) < 1 << 20)
  }

  @Test func stepsAreTheSameEveryTimeAndInEveryState() throws {
    let body =
      "local s = 0 for i = 1, 5000 do s = s + #tostring(i) end for k in pairs({a = 1, b = 2}) do s = s .. k end return s"
    let first = try Script(body)
    let second = try Script(body)
    let outcome = first.run()
    let steps = clua_steps_used(first.state)
    #expect(steps > 10_000)
    for script in [first, second, second, first] {
      #expect(script.run() == outcome)
      #expect(clua_steps_used(script.state) == steps)
    }
  }

  /// Garbage of earlier calls must not decide whether a call is killed. Only memory is limited here, because a busy
  /// machine could reach a time limit.
  @Test func memoryDecidesTheSameWhateverRanBefore() throws {
    let body = "local t = {} for i = 1, f.now do t[i] = 'item ' .. i end return #t"
    final class Count { var value: Int64 = 0 }
    let count = Count()
    var callbacks = clua_callbacks()
    callbacks.context = Unmanaged.passUnretained(count).toOpaque()
    callbacks.fact = { context, _, _, _, _, value in
      guard let context, let value else { return 1 }
      value.pointee.kind = CLUA_INTEGER
      value.pointee.integer = Unmanaged<Count>.fromOpaque(context).takeUnretainedValue().value
      return 0
    }
    let memoryAlone = clua_budget(steps: 100_000, bytes: 1 << 20, nanoseconds: 0)
    func verdicts(_ counts: [Int64]) throws -> [Int64: Bool] {
      let script = try Script(body, callbacks: callbacks)
      var killed: [Int64: Bool] = [:]
      for size in counts {
        count.value = size
        killed[size] = script.run(memoryAlone).isKilled
      }
      return killed
    }
    let sizes = stride(from: Int64(4000), through: 9000, by: 100).map { $0 }
    let upwards = try verdicts(sizes)
    #expect(try upwards == verdicts(sizes.reversed()))
    #expect(try upwards == verdicts(sizes.shuffled()))
    // A state that never ran anything gives the same result.
    for size in sizes { #expect(try verdicts([size])[size] == upwards[size], "\(size) items") }
    #expect(Set(upwards.values) == [true, false])
  }

  /// One instruction compares megabytes. Steps must be exhausted nevertheless, because time would differ between
  /// machines.
  @Test(arguments: [
    "local a, b = ('a'):rep(200000), ('a'):rep(200000) .. '' while true do local c = a == b end",
    "local a, b = ('a'):rep(150000) .. 1, ('a'):rep(150000) .. 2 while true do local c = a < b end",
    "local a, b, t = ('a'):rep(200000), ('a'):rep(200000) .. '', {} t[a] = 1 while true do local c = t[b] end",
  ]) func longComparisonsRunOutOfSteps(_ body: String) throws {
    let script = try Script(body)
    let patient = clua_budget(steps: 100_000, bytes: 1 << 20, nanoseconds: 5_000_000_000)
    for _ in 0..<3 { #expect(script.run(patient) == .killed(CLUA_KILLED_STEPS, line: 2)) }
    script.load("return policy 'x' { send = function(f) for i = 1, 30000 do end return allow end }")
    #expect(script.run() == .allow)
  }

  /// A list with holes has several borders. Lua's choice must not depend on the process's seed.
  @Test(arguments: [
    "local t = {} for i = 1, 40 do t[i] = i end for i = 1, 40, 3 do t[i] = nil end return #t",
    "local t = {1, 2, nil, 4, nil, 6, 7, nil} return #t",
    "local t = {n = 1, 1, nil, 3, a = 2, [9] = 9, [5] = 5} return #t",
    "local t = {} for i = 40, 1, -1 do t['k' .. i] = i t[i * 2] = i t[i] = i end t[17] = nil return #t",
  ]) func lengthsOfHolesDoNotFollowTheSeed(_ body: String) throws {
    let first = try Script.outcome(of: body)
    for _ in 0..<50 { #expect(try Script.outcome(of: body) == first) }
  }

  @Test func timeIsTheBackstop() throws {
    final class Clock { var now: UInt64 = 0 }
    let clock = Clock()
    var callbacks = clua_callbacks()
    callbacks.context = Unmanaged.passUnretained(clock).toOpaque()
    callbacks.clock = { context in
      guard let context else { return 0 }
      let clock = Unmanaged<Clock>.fromOpaque(context).takeUnretainedValue()
      clock.now += 3_000_000
      return clock.now
    }
    let script = try Script("for i = 1, 20000 do end return allow", callbacks: callbacks)
    #expect(script.run() == .killed(CLUA_KILLED_TIME, line: 2))
    #expect(String(cString: clua_message(script.state)) == "stopped after 10 ms")
    #expect(script.run(clua_budget(steps: 100_000, bytes: 1 << 20, nanoseconds: 0)) == .allow)
  }
}
