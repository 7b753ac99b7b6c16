import Foundation
import Synchronization
import Testing

@testable import MoongateSDK

@Suite struct RefusalPaceTests {
  /// Attack: the time of a refusal tells whether the site has hashed a password.
  @Test func refusalsTakeTheSameTime() {
    let pace = RefusalPace()
    #expect(pace.remaining(after: .milliseconds(20), at: "a", isKnown: false) == .milliseconds(230))
    #expect(pace.remaining(after: .milliseconds(400), at: "a", isKnown: true) == .milliseconds(100))
    #expect(pace.remaining(after: .milliseconds(20), at: "a", isKnown: false) == .milliseconds(480))
    #expect(pace.remaining(after: .milliseconds(20), at: "b", isKnown: false) == .milliseconds(230))
    // A known name waits as long.
    #expect(pace.remaining(after: .milliseconds(20), at: "a", isKnown: true) == .milliseconds(480))
    for _ in 1...10 { _ = pace.remaining(after: .milliseconds(20), at: "a", isKnown: true) }
    #expect(pace.remaining(after: .milliseconds(20), at: "a", isKnown: false) == .milliseconds(230))
    _ = pace.remaining(after: .seconds(9), at: "a", isKnown: true)
    #expect(pace.remaining(after: .milliseconds(20), at: "a", isKnown: false) == .milliseconds(1980))
  }

  /// A site that does not answer holds up no other.
  @Test func sitesHaveThreadsOfTheirOwn() async throws {
    let calls = BlockingCalls(threads: 1, waiting: 0)
    let gate = Gate()
    async let held = calls.run(at: "a") { gate.wait() }
    await gate.entered()
    await #expect(throws: BlockingCalls.Busy.self) { try await calls.run(at: "a") { true } }
    #expect(try await calls.run(at: "b") { true })
    gate.open()
    #expect(try await held)
  }

  /// Attack: a site that takes connections and never answers holds all threads of the pool on which tasks run, so that
  /// the gateway answers no request.
  @Test(.timeLimit(.minutes(1))) func callsThatBlockHoldUpNoTask() async throws {
    let calls = BlockingCalls(threads: 16, waiting: 1)
    let site = SilentSite()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 1...17 {
        group.addTask { try await calls.run(at: "a") { site.call() } }
      }
      while site.calls < 16 { await Task.yield() }
      await withCheckedContinuation { continuation in DispatchQueue.global().async { continuation.resume() } }
      for _ in 1...17 { site.answer() }
      try await group.waitForAll()
    }
    // The call that waited has had its turn, and the threads are free again.
    #expect(site.calls == 17)
    #expect(try await calls.run(at: "a") { true })
  }
}

/// Blocks each call until it is answered.
private final class SilentSite: Sendable {
  private let entered = Mutex(0)
  private let answers = DispatchSemaphore(value: 0)

  var calls: Int { entered.withLock { $0 } }

  func call() {
    entered.withLock { $0 += 1 }
    answers.wait()
  }

  func answer() { answers.signal() }
}

/// Blocks a thread until it is opened.
private final class Gate: Sendable {
  private let isEntered = Mutex(false)
  private let isOpen = Mutex(false)

  func wait() -> Bool {
    isEntered.withLock { $0 = true }
    while !isOpen.withLock({ $0 }) { sched_yield() }
    return true
  }

  func entered() async { while !isEntered.withLock({ $0 }) { await Task.yield() } }

  func open() { isOpen.withLock { $0 = true } }
}
