import Foundation
import Testing

/// Rules that hold for each line of the sources: SQL is in the store only, HTML in templates, and every type that other
/// targets see has a doc comment.
@Suite struct SourceRulesTests {
  /// Files with HTML that is no page of the gateway.
  private static let otherPages: Set<String> = [
    // The second part of a mail.
    "Sources/MoongateDelivery/Mail/MailPage.swift",
    // Sites beside the gateway, for tests and the demo.
    "Sources/DemoGoogle/MockPages.swift", "Sources/demo-service/Pages.swift",
    // What an attacker types.
    "Sources/MoongateConformance/IdentifierRules.swift",
  ]

  @Test func onlyTheStoreKnowsSQL() throws {
    let lines = try Self.files().filter { !$0.path.hasPrefix("Sources/MoongateStore/") }.flatMap(\.sql)
    #expect(lines == [])
  }

  @Test func pagesAreTemplates() throws {
    let lines = try Self.files().filter { !Self.otherPages.contains($0.path) }.flatMap(\.html)
    #expect(lines == [])
  }

  @Test func typesForOthersAreDocumented() throws {
    #expect(try Self.files().flatMap(\.undocumentedTypes) == [])
  }

  @Test func rulesDetectViolations() {
    func file(_ text: String) -> File { File(path: "A.swift", text: text) }
    #expect(file(#"  let text = "SELECT id FROM account""#).sql.count == 1)
    #expect(file("// a\nrun(\"DELETE FROM flow\")\n").sql == ["A.swift:2: run(\"DELETE FROM flow\")"])
    #expect(file("let selected = rows.first // SELECT a FROM b").sql == [])
    #expect(file(#"return "<p class='a'>\(text)</p>""#).html.count == 1)
    #expect(file(#"out += "</form>""#).html.count == 1)
    #expect(file("let a: Array<Int>\nif a < b, c > d {\n/// `<p>`").html == [])
    #expect(file("package final class A {").undocumentedTypes.count == 1)
    #expect(file("/// A.\n@Suite\npublic indirect enum B {\nstruct A {\npackage let c: Int").undocumentedTypes == [])
  }

  private static func files() throws -> [File] {
    let paths = try ["Sources", "Plugins"].flatMap { try Repository.files(below: $0, [".swift"]) }
      .filter { !$0.contains("Templates/") }
    #expect(paths.count > 500)
    return try paths.map { File(path: $0, text: try Repository.text(of: $0)) }
  }
}

/// A Swift file, without comments where these could be taken for code.
private struct File {
  let path: String
  let text: String

  /// Lines with an SQL statement. We write its words in capitals.
  var sql: [String] {
    lines(with: ["SELECT ", "INSERT INTO ", "DELETE FROM ", "UPDATE ", "CREATE TABLE "]) {
      $0.firstMatch(of: /"[^"]*\b(SELECT .+ FROM|INSERT INTO|DELETE FROM|UPDATE \w+ SET|CREATE TABLE)\b/) != nil
    }
  }

  /// Lines with a tag.
  var html: [String] {
    lines(with: ["</", "<p", "<a ", "<div", "<form", "<input", "<span", "<meta", "<link", "<td", "<tr"]) {
      $0.firstMatch(
        of: /<\/?(html|head|body|div|p|a|form|span|h[1-6]|table|tr|td|button|input|style|script|meta|link)(\s[^>]*)?>/)
        != nil
    }
  }

  /// Types that other targets see, without a doc comment.
  var undocumentedTypes: [String] {
    var above = Substring()
    var found: [String] = []
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let line = line.drop { $0 == " " }
      if line.hasPrefix("p"), !above.hasPrefix("///"),
        line.prefixMatch(of: /(public|package) ((final|indirect) )*(struct|class|enum|protocol|actor) \w/) != nil
      {
        found.append("\(path):\(index + 1): \(line)")
      }
      if !line.hasPrefix("@") { above = line }
    }
    return found
  }

  /// The lines that a rule forbids, looked for only where one of the texts is.
  private func lines(with texts: [String], _ isForbidden: (Substring) -> Bool) -> [String] {
    let bytes = Data(text.utf8)
    guard texts.contains(where: { bytes.range(of: Data($0.utf8)) != nil }) else { return [] }
    return text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().compactMap { index, line in
      let code = line.drop { $0 == " " }
      guard !code.hasPrefix("//"), isForbidden(code) else { return nil }
      return "\(path):\(index + 1): \(code)"
    }
  }
}
