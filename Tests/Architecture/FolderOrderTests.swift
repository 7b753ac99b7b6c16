import Foundation
import Testing

/// The folders of a target have an order, which its README tells in a table: a file uses types of its own folder and of
/// those above it there.
@Suite struct FolderOrderTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  @Test(arguments: ["MoongateCore", "MoongateExec"]) func foldersUseOnlyLowerFolders(_ target: String) throws {
    let sources = Self.root.appendingPathComponent("Sources/\(target)")
    let order = try Self.order(
      inTableOf: String(contentsOf: sources.appendingPathComponent("README.md"), encoding: .utf8))
    let files = try SourceFile.all(in: sources)
    #expect(
      Set(files.map(\.folder)) == Set(order),
      "each folder of Sources/\(target) is in the table of its README, and nothing else is")
    #expect(FolderOrder(order).violations(of: files) == [])
  }

  @Test func aUseOfAFolderAboveIsSeen() {
    let low = SourceFile(
      folder: "Values", name: "Host.swift",
      source: "/// A Session is no host.\nstruct Host { let text = \"Session\"\n  func of(_ one: Session) {} }")
    let high = SourceFile(
      folder: "Sessions", name: "Session.swift", source: "package struct Session { let host: Host }")
    #expect(
      FolderOrder(["Values", "Sessions"]).violations(of: [low, high])
        == ["Values/Host.swift uses `Session` of Sessions/Session.swift, and Sessions is above Values"])
    #expect(FolderOrder(["Sessions", "Values"]).violations(of: [low, high]).count == 1)
  }

  /// A name in a comment or in a string literal is not a use, and a private type that two files declare belongs to
  /// neither folder.
  @Test func commentsAndLiteralsAreNotUses() {
    let low = SourceFile(
      folder: "Values", name: "Host.swift", source: "// Session\nlet text = \"Session\"\nprivate struct Part {}")
    let high = SourceFile(
      folder: "Sessions", name: "Session.swift", source: "struct Session {}\nprivate struct Part {}")
    #expect(FolderOrder(["Values", "Sessions"]).violations(of: [low, high]) == [])
  }

  /// The folders in the first column of the table, from the bottom up.
  private static func order(inTableOf readme: String) -> [String] {
    readme.split(separator: "\n").compactMap { line in
      line.hasPrefix("| `") ? line.dropFirst(3).prefix { $0 != "`" } : nil
    }.map(String.init)
  }
}
