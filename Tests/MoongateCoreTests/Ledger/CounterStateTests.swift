import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

/// The rules of limits.
@Suite struct CounterStateTests {
  private let now = ManualClock.start

  private func limit(
    max: Int = 5, window: Duration? = .seconds(86_400), lock: [Duration] = [.seconds(900), .seconds(3600)],
    disables: Bool = false
  )
    -> ResolvedLimit
  {
    ResolvedLimit(
      provider: ProviderName(test: "phone_otp"), name: "verify", key: .phone, counter: [1], max: max, window: window,
      counts: .failures, lock: lock,
      disables: disables)
  }

  @Test(arguments: [(0, 0, 1), (0, 4, 5), (2, 2, 5)]) func attemptBelowTheLimitGetsTheNextPlace(
    pending: Int, settled: Int, place: Int
  ) {
    #expect(CounterState(pending: pending, settled: settled).judge(limit(), at: now) == .open(place: place))
  }

  @Test func limitFilledByUnsettledAttemptsWaits() {
    #expect(CounterState(pending: 1, settled: 4).judge(limit(), at: now) == .wait)
  }

  @Test func lockHoldsUntilItsEndExclusively() {
    let state = CounterState(lockedSince: now, lockedUntil: now + .seconds(900))
    #expect(state.judge(limit(), at: now + .milliseconds(899_999)) == .refuse(.locked(until: now + .seconds(900))))
    #expect(state.judge(limit(), at: now + .seconds(900)) == .open(place: 1))
  }

  @Test func failureThatReachesTheLimitBeginsTheFirstLock() {
    #expect(
      CounterState(settled: 5).afterFailure(limit(), at: now)
        == .lock(Lock(since: now, until: now + .seconds(900), level: 0)))
    #expect(CounterState(settled: 4).afterFailure(limit(), at: now) == nil)
  }

  @Test func unlockedCounterAtItsLimitLocksAtTheNextAttempt() {
    #expect(
      CounterState(settled: 7).judge(limit(), at: now) == .lock(Lock(since: now, until: now + .seconds(900), level: 0)))
  }

  @Test(arguments: [(0, 1), (1, 1)]) func locksEscalateAndTheLastRepeats(level: Int, next: Int) {
    let state = CounterState(
      settled: 5, lockedSince: now - .seconds(1000), lockedUntil: now - .seconds(100), lockLevel: level)
    #expect(state.nextLock(limit(), at: now)?.level == next)
  }

  @Test func escalationRestartsAWindowAfterTheLastLock() {
    let ended = now - .seconds(86_400)
    let state = CounterState(settled: 5, lockedSince: ended - .seconds(900), lockedUntil: ended, lockLevel: 1)
    #expect(state.nextLock(limit(), at: now)?.level == 0)
    #expect(state.nextLock(limit(), at: now - .milliseconds(1))?.level == 1)
  }

  @Test func withoutALockTheOldestEventDeterminesTheTime() {
    let state = CounterState(settled: 4, oldest: now - .seconds(60))
    #expect(
      state.judge(limit(max: 4, window: .seconds(900), lock: []), at: now) == .refuse(.full(until: now + .seconds(840)))
    )
  }

  @Test func aDisablingLimitDisables() {
    #expect(
      CounterState(settled: 100).afterFailure(limit(max: 100, window: nil, lock: [], disables: true), at: now)
        == .disable)
    #expect(CounterState(isDisabled: true).judge(limit(), at: now) == .refuse(.disabled))
  }

  @Test func aStandingLockIsNeitherLengthenedNorEscalated() {
    let state = CounterState(settled: 9, lockedSince: now, lockedUntil: now + .seconds(900))
    #expect(state.afterFailure(limit(), at: now + .seconds(1)) == nil)
  }
}
