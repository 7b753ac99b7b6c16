import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@Suite struct ActiveGenerationTests {
  private static func generation(_ id: String) -> TestGeneration {
    TestGeneration(id: id, gateway: .test(), flows: [], policies: [])
  }

  /// Generations in use are counted, released ones are not, and switching back does not count twice.
  @Test func generationsInMemoryAreCounted() {
    let active = ActiveGeneration(Self.generation("0"), at: ManualClock.start)
    #expect(active.live == 1)
    var held: [any PolicyGeneration] = [active.current]
    for number in 1...5 {
      active.activate(Self.generation("\(number)"), at: ManualClock.start)
      held.append(active.current)
    }
    #expect(active.live == 6)
    active.activate(held[2], at: ManualClock.start)
    #expect(active.live == 6)
    held = []
    #expect(active.live == 1)
    for number in 0..<100 { active.activate(Self.generation("again \(number)"), at: ManualClock.start) }
    #expect(active.live == 1)
  }

  @Test func evaluatorsAreReleasedWithTheirGeneration() throws {
    let active = ActiveGeneration(Self.generation("0"), at: ManualClock.start)
    try active.withEvaluator(of: active.current) { _ in }
    active.activate(Self.generation("1"), at: ManualClock.start)
    #expect(active.live == 1)
  }
}
