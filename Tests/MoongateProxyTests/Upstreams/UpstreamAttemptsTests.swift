import NIOCore
import Testing

@testable import MoongateProxy

/// How many attempts a request gets, at which upstreams.
@Suite struct UpstreamAttemptsTests {
  private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

  private func attempts(order: [Int], retries: Int) -> UpstreamAttempts {
    UpstreamAttempts(order: order, retries: retries, until: start + .seconds(30))
  }

  /// The targets that are tried while each attempt fails in the same way.
  private func tried(_ attempts: UpstreamAttempts, isUsual: Bool, isCovered: Bool) -> [Int] {
    var attempts = attempts
    var budget = RetryBudget()
    var targets = [attempts.target]
    while attempts.next(isUsual: isUsual, isCovered: isCovered, &budget, at: start) != .end {
      targets.append(attempts.target)
    }
    return targets
  }

  @Test func withoutRetryEachUpstreamIsTriedOnce() {
    let several = attempts(order: [2, 0, 1], retries: 0)
    #expect(tried(several, isUsual: true, isCovered: true) == [2, 0, 1])
    #expect(tried(several, isUsual: false, isCovered: false) == [2])
    #expect(tried(UpstreamAttempts(), isUsual: true, isCovered: false) == [0])
  }

  /// `times` counts the attempts that there would not be without `retry`.
  @Test func retryAddsAttempts() {
    #expect(tried(attempts(order: [1, 0], retries: 3), isUsual: true, isCovered: true) == [1, 0, 1, 0, 1])
    #expect(tried(attempts(order: [1, 0], retries: 3), isUsual: false, isCovered: true) == [1, 0, 1, 0])
    #expect(tried(attempts(order: [], retries: 2), isUsual: false, isCovered: true) == [0, 0, 0])
    #expect(tried(attempts(order: [], retries: 2), isUsual: true, isCovered: false) == [0])
  }

  @Test func anUpstreamThatWasTriedGetsSomeTime() {
    var attempts = attempts(order: [0, 1], retries: 5)
    var budget = RetryBudget()
    var steps: [UpstreamAttempts.Next] = []
    for _ in 0..<6 { steps.append(attempts.next(isUsual: false, isCovered: true, &budget, at: start)) }
    let pause = UpstreamAttempts.pause
    #expect(steps == [.now, .after(pause), .after(pause * 2), .after(pause * 4), .after(pause * 8), .end])
  }

  @Test func noRetryBeginsAfterTheTimeout() {
    var attempts = attempts(order: [], retries: 5)
    var budget = RetryBudget()
    #expect(attempts.next(isUsual: false, isCovered: true, &budget, at: start + .seconds(29)) != .end)
    #expect(attempts.next(isUsual: false, isCovered: true, &budget, at: start + .seconds(30)) == .end)
  }

  /// Attack: requests that a service cannot answer, each sent again, keep it down.
  @Test func retriesAreAFractionOfTheRequests() {
    var budget = RetryBudget()
    var retries = 0
    for _ in 0..<10_000 {
      budget.requestBegan()
      for _ in 0..<5 where budget.take(at: start) { retries += 1 }
    }
    #expect(retries <= Int(RetryBudget.reserve) + 2_000)
    #expect(retries >= 2_000, "a fifth of the requests may be retried")
    // Some retries are always possible, so that a route with few requests has them.
    #expect((0..<100).count { _ in budget.take(at: start + .seconds(1)) } == 10)
  }
}
