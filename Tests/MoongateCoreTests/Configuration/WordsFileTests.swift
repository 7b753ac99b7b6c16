import MoongateCore
import Testing

@Suite struct WordsFileTests {
  private static func lines(_ text: String) -> [WordsFile.Line] { WordsFile.lines(of: text).map(\.line) }

  @Test func linesKeepTheirNumberAndSection() {
    let lines = WordsFile.lines(of: "# Own words\n\n title = Hello = you \nwrong\n[sentences]\nnot_billed = Ask us.\n")
    #expect(lines.map(\.number) == [3, 4, 6])
    #expect(
      lines.map(\.line) == [
        .text(name: "title", "Hello = you"), .malformed, .sentence(name: "not_billed", "Ask us."),
      ])
  }

  @Test(arguments: ["[sentences]", "[sentences]  ", "\t[sentences]\t"])
  func spacesAroundTheHeadingDoNotCount(heading: String) {
    #expect(Self.lines("\(heading)\na = b") == [.sentence(name: "a", "b")])
  }

  /// A line that only begins with the heading is not the heading, for the pages and for the check of reasons.
  @Test(arguments: ["[sentences] of ours", "[sentences]#", "[sentences]:"])
  func aHeadingWithMoreTextIsMalformed(heading: String) {
    #expect(Self.lines("\(heading)\na = b") == [.malformed, .text(name: "a", "b")])
  }

  @Test func linesMayEndAsOnWindows() {
    #expect(Self.lines("a = b\r\n\r\nc = d\r\n") == [.text(name: "a", "b"), .text(name: "c", "d")])
  }
}
