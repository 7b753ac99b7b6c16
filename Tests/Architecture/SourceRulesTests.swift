import Foundation
import Testing

/// Rules that hold for each line of the sources: SQL is in the store only, HTML in templates, and every type that other
/// targets see has a doc comment.
@Suite struct SourceRulesTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// Files with HTML that is no page of the gateway.
  private static let otherPages: Set<String> = [
    // The second part of a mail.
    "Sources/MoongateDelivery/Mail/MailPage.swift",
    // Sites beside the gateway, for tests and the demo.
    "Sources/MoongateMockGoogle/MockPages.swift", "Sources/demo-service/Pages.swift",
  ]

  @Test func onlyTheStoreKnowsSQL() throws {
    let lines = try Self.lines().filter { !$0.path.hasPrefix("Sources/MoongateStore/") && Self.isSQL($0.text) }
    #expect(lines.map(\.place) == [])
  }

  @Test func pagesAreTemplates() throws {
    let lines = try Self.lines().filter { !Self.otherPages.contains($0.path) && Self.isHTML($0.text) }
    #expect(lines.map(\.place) == [])
  }

  @Test func typesForOthersAreDocumented() throws {
    var undocumented: [String] = []
    var above = ""
    for line in try Self.lines(withComments: true) {
      let text = line.text.trimmingCharacters(in: .whitespaces)
      if Self.isTypeForOthers(text), !above.hasPrefix("///") { undocumented.append(line.place) }
      if !text.hasPrefix("@") { above = text }
    }
    #expect(undocumented == [])
  }

  @Test func theRulesSeeWhatTheyForbid() {
    #expect(Self.isSQL(#"  let text = "SELECT id FROM account""#) && Self.isSQL(#"run("delete from flow")"#))
    #expect(!Self.isSQL("let selected = rows.first") && !Self.isSQL(#"throw Problem("update the program")"#))
    #expect(Self.isHTML(#"return "<p class='a'>\(text)</p>""#) && Self.isHTML(#"out += "</form>""#))
    #expect(!Self.isHTML("let a: Array<Int>") && !Self.isHTML("if a < b, c > d {"))
    #expect(Self.isTypeForOthers("package final class A {") && Self.isTypeForOthers("public indirect enum B {"))
    #expect(!Self.isTypeForOthers("struct A {") && !Self.isTypeForOthers("package let classes: Int"))
  }

  // MARK: rules

  private static func isSQL(_ line: String) -> Bool {
    let words = /(?i)"[^"]*\b(select\b.+\bfrom\b|insert into\b|delete from\b|update \w+ set\b|create table\b)/
    return line.firstMatch(of: words) != nil
  }

  private static func isHTML(_ line: String) -> Bool {
    let tag = /<\/?(html|head|body|div|p|a|form|span|h[1-6]|table|tr|td|button|input|style|script|meta|link)(\s[^>]*)?>/
    return line.firstMatch(of: tag) != nil
  }

  private static func isTypeForOthers(_ line: String) -> Bool {
    line.prefixMatch(of: /(public|package) ((final|indirect) )*(struct|class|enum|protocol|actor) \w/) != nil
  }

  // MARK: reading

  private struct Line {
    let path: String
    let number: Int
    let text: String

    var place: String { "\(path):\(number): \(text)" }
  }

  /// The lines of the Swift files of Sources and Plugins, without files that `moongate provider new` writes.
  private static func lines(withComments: Bool = false) throws -> [Line] {
    var found: [Line] = []
    for folder in ["Sources", "Plugins"] {
      let files = try FileManager.default.subpathsOfDirectory(atPath: root.appendingPathComponent(folder).path)
      for file in files.sorted() where file.hasSuffix(".swift") && !file.contains("Templates/") {
        let path = "\(folder)/\(file)"
        let text = try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
          let isComment = line.drop { $0 == " " }.hasPrefix("//")
          if withComments || !isComment { found.append(Line(path: path, number: index + 1, text: String(line))) }
        }
      }
    }
    #expect(found.count > 10_000)
    return found
  }
}
