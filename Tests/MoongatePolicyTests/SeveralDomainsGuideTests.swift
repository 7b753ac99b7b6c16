import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateTesting
import Testing

/// The configuration in Documentation/guides/several-domains.md loads unchanged and does what the guide says.
@Suite struct SeveralDomainsGuideTests {
  private static let guide =
    (try? String(contentsOfFile: TestFolder.root + "/Documentation/guides/several-domains.md", encoding: .utf8)) ?? ""

  /// The files of "Two brands on two domains". They are in a numbered list, indented by three spaces.
  private func recipe() throws -> [String: String] {
    let text = Self.guide.components(separatedBy: "\n").map { $0.hasPrefix("   ") ? String($0.dropFirst(3)) : $0 }
      .joined(separator: "\n")
    let files = ManualTests.examples(in: text, page: "several-domains.md").filter {
      $0.heading == "Two brands on two domains"
    }
    #expect(files.map(\.file) == ["gateway.lua", "routes.lua"])
    return Dictionary(files.map { ($0.file, $0.text) }) { first, _ in first }
  }

  private func load(_ files: [String: String]) throws -> Result<any PolicyGeneration, RefusedConfiguration> {
    try TestFolder(files).load(
      ShippedProviders.all.map(\.descriptor), environment: ["MOONGATE_KEY": String(repeating: "k", count: 32)])
  }

  @Test func theRecipeLoads() throws {
    let generation = try load(try recipe()).get()
    #expect(
      generation.gateway.domains == ["example.com", "example.org"] && generation.gateway.cookieDomain == "example.com")
    #expect(generation.gateway.furtherDomain(of: "app.example.org") == "example.org")
    #expect(Set(generation.routes.routes.compactMap(\.host)) == ["app.example.com", "app.example.org"])
  }

  /// "It refuses a route that no session can reach, …"
  @Test(arguments: [
    ("routes.lua", "app.example.org", "app.example.net", "no session can reach"),
    ("gateway.lua", "\"example.org\" }", "\"example.com\" }", "is listed twice"),
    ("gateway.lua", "\"example.org\" }", "\"a.example.com\" }", "is below"),
    ("gateway.lua", "auth.example.com", "auth.example.net", "is not under any of them"),
  ]) func documentedMistakesAreRefused(_ file: String, _ old: String, _ new: String, _ sentence: String) throws {
    var files = try recipe()
    files[file] = files[file]?.replacingOccurrences(of: old, with: new)
    guard case .failure(let refused) = try load(files) else {
      Issue.record("the folder was accepted")
      return
    }
    #expect(refused.problems.contains { $0.description.contains(sentence) }, "\(refused.problems)")
  }

  /// The program reports every reason in the last table.
  @Test func quotedReasonsExistInTheSources() throws {
    let table = try #require(Self.guide.components(separatedBy: "\n## If it does not work\n").last)
    let quoted = table.matches(of: /(?m)^\| `([^`]+)` \|/).map { String($0.1) }
    #expect(quoted.count >= 8)
    let sources = try ["Sources/MoongateCore/Sessions/Handoff.swift", "Sources/MoongateHTTP/Pages/HandoffPage.swift"]
      .map {
        try String(contentsOfFile: "\(TestFolder.root)/\($0)", encoding: .utf8)
      }.joined()
    for reason in quoted {
      for part in reason.components(separatedBy: "…") {
        #expect(sources.contains(part.trimmingCharacters(in: .whitespaces)), "no source contains `\(part)`")
      }
    }
  }
}
