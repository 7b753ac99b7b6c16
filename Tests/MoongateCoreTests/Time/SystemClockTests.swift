import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// Attacks by changing the machine's clock.
@Suite struct SystemClockTests {
  /// Clocks that the test controls.
  private final class Clocks: Sendable {
    private let state = Mutex((wall: ManualClock.start, steady: ContinuousClock.now))
    func move(wall: Duration, steady: Duration) { state.withLock { $0 = ($0.wall + wall, $0.steady + steady) } }
    func clock(floor: Timestamp) -> SystemClock {
      SystemClock(
        floor: floor, wall: { [self] in state.withLock { $0.wall } }, steady: { [self] in state.withLock { $0.steady } }
      )
    }
  }

  @Test func clockDoesNotFollowABackwardStep() {
    let clocks = Clocks()
    let clock = clocks.clock(floor: Timestamp(milliseconds: 0))
    let before = clock.now()
    #expect(before == ManualClock.start)
    #expect(!clock.isSuspect)
    clocks.move(wall: .seconds(-3600), steady: .zero)
    #expect(clock.now() == before)
    #expect(clock.isSuspect)
    // A lock of 15 minutes ends after 15 minutes, not after an hour and a quarter.
    clocks.move(wall: .seconds(900), steady: .seconds(900))
    #expect(clock.now() == before + .seconds(900))
  }

  @Test func clockFollowsAForwardStep() {
    let clocks = Clocks()
    let clock = clocks.clock(floor: Timestamp(milliseconds: 0))
    clocks.move(wall: .seconds(100), steady: .seconds(1))
    #expect(clock.now() == ManualClock.start + .seconds(100))
    #expect(!clock.isSuspect)
  }

  @Test func clockStartsAtTheStoresTime() {
    let clocks = Clocks()
    let clock = clocks.clock(floor: ManualClock.start + .seconds(3600))
    #expect(clock.now() == ManualClock.start + .seconds(3600))
    #expect(clock.isSuspect)
    clocks.move(wall: .seconds(10), steady: .seconds(10))
    #expect(clock.now() == ManualClock.start + .seconds(3610))
  }

  @Test(arguments: [(1, 1), (1000, 1), (1001, 2), (0, 1), (900_000, 900)]) func retryAfterIsRoundedUpAndAtLeastOne(
    milliseconds: Int, seconds: Int
  ) {
    #expect(Duration.milliseconds(milliseconds).retryAfterSeconds == seconds)
  }

  @Test(arguments: [
    (1, "1 second"), (45, "45 seconds"), (60, "1 minute"), (899, "15 minutes"), (900, "15 minutes"), (3600, "1 hour"),
    (21_600, "6 hours"),
  ])
  func waitsAreWrittenInWords(seconds: Int, words: String) { #expect(Duration.seconds(seconds).spokenLength == words) }

  @Test func timesSaturate() {
    #expect(Timestamp(milliseconds: .max) + .seconds(1) == Timestamp(milliseconds: .max))
    #expect(Timestamp(milliseconds: 0) + .seconds(Int64.max) == Timestamp(milliseconds: .max))
  }
}
