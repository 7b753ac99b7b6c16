import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

/// How codes are generated and parsed.
@Suite struct CodeRuleTests {
  private let digits = CodeRule(length: 6, alphabet: .digits, lifetime: .seconds(600))
  private let letters = CodeRule(length: 6, alphabet: .letters, lifetime: .seconds(600))

  @Test(arguments: [
    "012345", "012 345", "012-345", " 0 1 2 3 4 5 ", "٠١٢٣٤٥", "०१२३४५", "０１２３４５", "012–345", "012\u{00ad}345",
    "\u{200B}012345", "012\u{00A0}345\n", "012\u{2212}345", "０１２－３４５", "\u{FEFF}012\u{2060}345",
  ])
  func commonSpellingsOfACodeAreRead(typed: String) { #expect(digits.read(typed) == "012345") }

  @Test(arguments: [
    "", "12345", "1234567", "12345a", "12345½", "12345²", "１２３４５六", "<script>", "12345\u{0}", "1.2345",
    String(repeating: "1", count: 100_000),
  ])
  func inputThatCannotBeACodeIsNotAGuess(typed: String) { #expect(digits.read(typed) == nil) }

  @Test func lettersAreReadInEitherCase() {
    #expect(letters.read("abc-def") == "ABCDEF")
    #expect(letters.read("ＡＢＣ\u{2013}ｄｅｆ") == "ABCDEF")
    #expect(letters.read("ABCDEI") == nil)
    #expect(letters.read("ABCDE\u{17F}") == nil)
    #expect(letters.read("ßABCD") == nil)
  }

  @Test func digitsAreUniformlyDistributed() {
    let random = SeededRandom(seed: 7)
    let rule = CodeRule(length: 4, alphabet: .digits, lifetime: .seconds(600))
    var counts = [Int](repeating: 0, count: 10)
    for _ in 0..<20_000 {
      let code = rule.make(from: random)
      #expect(code.count == 4)
      for digit in code { counts[Int(String(digit)) ?? 0] += 1 }
    }
    // 80,000 digits: 8,000 of each are expected, with a standard deviation of 85; six deviations are allowed either
    // way.
    #expect(counts.allSatisfy { abs($0 - 8_000) < 510 }, "\(counts)")
  }

  @Test func numbersBelowABoundAreUnbiased() {
    /// Returns the largest number first, which has to be rejected as biased, then 5.
    struct Edge: RandomSource {
      let calls = ManualClock()
      func bytes(_ count: Int) -> [UInt8] {
        defer { calls.advance(by: .milliseconds(1)) }
        return calls.now() == ManualClock.start ? [255, 255, 255, 255] : [0, 0, 0, 5]
      }
    }
    #expect(Edge().uniform(below: 10) == 5)
  }
}
