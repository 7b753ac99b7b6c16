import CLua
import Testing

/// Errors across Swift frames: the Swift frame returns before C raises, so no Swift object leaks.
@Suite struct CallbackTests {
  /// Counts its living instances.
  final class Counter {
    var alive = 0
    var made = 0
    var kept: [Token] = []
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 1)
    deinit { bytes.deallocate() }
  }

  final class Token {
    let counter: Counter
    init(_ counter: Counter) {
      self.counter = counter
      counter.alive += 1
      counter.made += 1
    }
    deinit { counter.alive -= 1 }
  }

  static func callbacks(_ counter: Counter) -> clua_callbacks {
    var callbacks = clua_callbacks()
    callbacks.context = Unmanaged.passUnretained(counter).toOpaque()
    callbacks.fact = { context, slot, _, _, _, value in
      guard let context, let value else { return 1 }
      let counter = Unmanaged<Counter>.fromOpaque(context).takeUnretainedValue()
      let tokens = (0..<3).map { _ in Token(counter) }
      // An object on the heap is alive in this frame until it returns.
      return withExtendedLifetime(tokens) {
        let text = slot == 0 ? "the \(tokens.count) tokens say no" : "IN"
        let count = text.utf8.count
        counter.bytes.copyBytes(from: text.utf8)
        value.pointee.kind = CLUA_STRING
        value.pointee.bytes = UnsafePointer(counter.bytes.baseAddress?.assumingMemoryBound(to: CChar.self))
        value.pointee.length = count
        return slot == 0 ? 1 : 0
      }
    }
    return callbacks
  }

  @Test func aThousandErrorsLeakNothing() throws {
    let counter = Counter()
    let script = try Script("return f.now", callbacks: Self.callbacks(counter))
    for _ in 0..<1000 { #expect(script.run() == .failed("the 3 tokens say no", line: 2)) }
    #expect(counter.alive == 0)
    #expect(counter.made == 3000)
    let held = clua_bytes_held(script.state)
    for _ in 0..<1000 { _ = script.run() }
    #expect(clua_bytes_held(script.state) < held + 200_000)
  }

  @Test func aThousandErrorsUnderPcallLeakNothing() throws {
    let counter = Counter()
    let script = try Script(
      "for i = 1, 100 do pcall(function() return f.now end) end return f.phone.country",
      callbacks: Self.callbacks(counter))
    for _ in 0..<10 { #expect(script.run() == .text("IN")) }
    #expect(counter.made == 3030)
    #expect(counter.alive == 0)
  }

  /// The value cannot be pushed because memory is exhausted. C raises after the callback has returned.
  @Test func outOfMemoryAfterACallbackLeaksNothing() throws {
    let counter = Counter()
    let script = try Script(
      "local t = {} while true do t[#t + 1] = f.phone.country .. #t end", callbacks: Self.callbacks(counter))
    #expect(script.run().isKilled)
    #expect(counter.alive == 0)
  }

  @Test func missingCallbackIsAnError() throws {
    #expect(try Script.outcome(of: "return f.now") == .failed("this fact cannot be read", line: 2))
    #expect(try Script.outcome(of: "return hour(0, 'UTC')") == .failed("time zones cannot be read here", line: 2))
  }

  @Test func statesAreCreatedAndDestroyedRepeatedly() throws {
    for _ in 0..<200 { #expect(try Script.outcome(of: "return allow") == .allow) }
  }
}
