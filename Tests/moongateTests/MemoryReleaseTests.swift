import CLinux
import Foundation
import Testing

@testable import MoongateCommand

@Suite struct MemoryReleaseTests {
  private static let interval: Duration = .seconds(5)
  private var rules = MemoryReleaseRules(interval: interval)
  private var time = Duration.zero

  /// A reading after an interval in which the process used a share of a processor.
  private mutating func read(unused: Int = 10, pages: Int, percent: Int = 1) -> MemoryReleaseRules.Release? {
    time += Self.interval * percent / 100
    return rules.next(MemoryUse(unused: unused << 20, programPages: pages << 20, processorTime: time))
  }

  private mutating func released(pages: Int) {
    rules.released(MemoryUse(unused: 10 << 20, programPages: pages << 20, processorTime: time))
  }

  @Test mutating func pagesOfTheStartAreReleasedOnceItIsOver() {
    #expect(read(pages: 58) == nil)
    #expect(read(pages: 58, percent: 40) == nil)
    #expect(read(pages: 58) == .programPages)
    released(pages: 8)
    for _ in 0..<100 { #expect(read(pages: 20) == nil) }
  }

  @Test mutating func pagesOfALoadAreReleasedAfterAMinuteAtRest() {
    _ = read(pages: 58)
    #expect(read(pages: 58) == .programPages)
    released(pages: 8)
    for _ in 0..<50 { #expect(read(pages: 50, percent: 90) == nil) }
    for _ in 0..<11 { #expect(read(pages: 50) == nil) }
    // A request in between is no rest.
    #expect(read(pages: 50, percent: 3) == nil)
    for _ in 0..<11 { #expect(read(pages: 50) == nil) }
    #expect(read(pages: 50) == .programPages)
  }

  @Test mutating func freedMemoryIsReleasedAtAnyTime() {
    #expect(read(unused: 10, pages: 58, percent: 90) == nil)
    #expect(read(unused: 35, pages: 58, percent: 90) == .freeMemory)
    // What the trim could not release is the new minimum.
    #expect(read(unused: 30, pages: 58, percent: 90) == nil)
    #expect(read(unused: 54, pages: 58, percent: 90) == nil)
    #expect(read(unused: 55, pages: 58, percent: 90) == .freeMemory)
  }

  /// The program continues with the pages that were taken from it.
  @Test func programPagesReturnWhenTheyAreUsed() throws {
    let before = try #require(MemoryUse.current)
    clinux_unmap_program_pages()
    let after = try #require(MemoryUse.current)
    #expect(after.programPages < before.programPages)
    #expect(after.processorTime >= before.processorTime)
    let text = try JSONEncoder().encode(["a": [1, 2, 3]])
    #expect(try JSONDecoder().decode([String: [Int]].self, from: text) == ["a": [1, 2, 3]])
  }
}
