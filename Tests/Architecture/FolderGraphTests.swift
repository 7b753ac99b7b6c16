import Foundation
import Testing

/// The folders of a target form a graph without cycles. `folders.txt` lists it: a file uses types of its own folder and
/// of the folders that the list allows.
@Suite struct FolderGraphTests {
  /// Folders that are no part of their target's graph.
  private static let others: Set<String> = [
    // Targets of their own.
    "EmbedFiles/Plugin", "EmbedFiles/Tool", "moongate/Main", "moongate-provider/Main",
    // Files that `moongate init` and `moongate-provider new` write.
    "moongate/Templates", "moongate-provider/Templates",
  ]

  @Test func everyFolderIsListed() throws {
    let maps = try Self.maps()
    for target in try FileManager.default.contentsOfDirectory(
      atPath: Repository.root.appendingPathComponent("Sources").path
    ).sorted() {
      let outside = try Self.paths(of: target).filter { maps[target]?.folder(of: $0) == nil }
      let folders = Set(outside.filter { $0.contains("/") }.map { $0.split(separator: "/").dropLast() })
      #expect(folders.isEmpty, "add the folders of Sources/\(target) to Tests/Architecture/folders.txt")
    }
    #expect(maps.count > 5)
  }

  @Test func foldersUseWhatTheListAllows() throws {
    for (target, map) in try Self.maps() {
      #expect(map.upwardUses == [], "\(target) in Tests/Architecture/folders.txt")
      #expect(map.violations(of: try Self.files(of: target)) == [], "\(target) in Tests/Architecture/folders.txt")
    }
  }

  /// The table of a README explains the folders of the list, in its order.
  @Test func readmesHaveTheFoldersOfTheList() throws {
    for (target, map) in try Self.maps() {
      let folders = Self.folders(inTableOf: try Repository.text(of: "Sources/\(target)/README.md"))
      #expect(folders == map.folders.map(\.name), "Sources/\(target)/README.md")
    }
  }

  /// The groups of commands do not use each other.
  @Test func groupsOfCommandsAreIndependent() throws {
    let map = try #require(try Self.maps()["moongate"])
    let shared: Set = ["Commands/Output", "Commands/Options", "Commands/Administration"]
    let groups = map.folders.filter { $0.name.hasPrefix("Commands/") && !shared.contains($0.name) }
    #expect(groups.count > 5)
    for group in groups { #expect(group.uses.isDisjoint(with: groups.map(\.name)), "\(group.name)") }
  }

  @Test func aUseThatIsNotAllowedIsSeen() {
    let low = SourceFile(
      path: "Values/Host.swift",
      source: "/// A Session is no host.\nstruct Host { let text = \"Session\"\n  func of(_ one: Session) {} }")
    let high = SourceFile(
      path: "Sessions/Session.swift", source: "package struct Session { let host: Host }")
    let sentence = "Values/Host.swift uses `Session` of Sessions/Session.swift, and Values may not use Sessions"
    #expect(Self.map("Values", "Sessions: Values").violations(of: [low, high]) == [sentence])
    let cyclic = Self.map("Values: Sessions", "Sessions: Values")
    #expect(cyclic.violations(of: [low, high]) == [])
    #expect(cyclic.upwardUses == ["Values uses Sessions, which is no folder above it in the list"])
  }

  @Test func anAllowedUseThatIsNotMadeIsSeen() {
    let low = SourceFile(path: "Values/Host.swift", source: "struct Host {}")
    let high = SourceFile(path: "Sessions/Session.swift", source: "struct Session {}")
    #expect(
      Self.map("Values", "Sessions: Values").violations(of: [low, high])
        == ["Sessions does not use Values: delete it from the line"])
  }

  /// A name in a comment or in a string literal is not a use, and a private type that two files declare belongs to
  /// neither folder.
  @Test func commentsAndLiteralsAreNotUses() {
    let low = SourceFile(
      path: "Values/Host.swift", source: "// Session\nlet text = \"Session\"\nprivate struct Part {}")
    let high = SourceFile(
      path: "Sessions/Session.swift", source: "struct Session {}\nprivate struct Part {}")
    #expect(Self.map("Values", "Sessions").violations(of: [low, high]) == [])
  }

  @Test(
    arguments: [
      #"let a = "(Hash) \(f(1) + Session.name) Part""#, #"let a = "http://\(Session.name)""#,
      #"let a = "\(f("Part"))\(Session.name)""#, "let a = Session(\"\"\"\n  Part \"Hash\"\n  \"\"\")",
      "let a = \"\"\"\n  Part \"\\(Session.name)\n  Hash\n  \"\"\"",
      #"let a = /"/; let b = 1 // Part"# + "\nlet c: Session",
      ##"let a = #"\(Part) "Hash" \#(Session.name)"#"##,
    ]) func expressionsInLiteralsAreUses(_ source: String)
  {
    let low = SourceFile(path: "Values/Host.swift", source: source)
    let high = SourceFile(path: "Sessions/Session.swift", source: "struct Session {}\nstruct Part {}\nstruct Hash {}")
    #expect(
      Self.map("Values", "Sessions").violations(of: [low, high])
        == ["Values/Host.swift uses `Session` of Sessions/Session.swift, and Values may not use Sessions"])
  }

  /// A folder that is listed is not a part of the folder that contains it, and files in no folder are above all.
  @Test func aFileBelongsToTheLongestListedFolder() {
    let map = Self.map("Pages/Rendering", "Pages: Pages/Rendering")
    #expect(map.folder(of: "Pages/Rendering/Words.swift") == "Pages/Rendering")
    #expect(map.folder(of: "Pages/Account/Rows.swift") == "Pages")
    #expect(map.folder(of: "Application.swift") == nil)
    let words = SourceFile(path: "Pages/Rendering/Words.swift", source: "struct Words { let a: Application }")
    let page = SourceFile(path: "Pages/Page.swift", source: "struct Page { let words: Words }")
    let top = SourceFile(path: "Application.swift", source: "struct Application { let page: Page }")
    #expect(
      map.violations(of: [words, page, top]) == [
        "Pages/Rendering/Words.swift uses `Application` of Application.swift, and Pages/Rendering may not use files in no folder"
      ])
  }

  // MARK: reading

  private static func map(_ lines: String...) -> FolderMap {
    FolderMap.all(in: "Target\n" + lines.map { "  \($0)\n" }.joined())["Target"] ?? FolderMap(folders: [])
  }

  private static func maps() throws -> [String: FolderMap] {
    FolderMap.all(in: try Repository.text(of: "Tests/Architecture/folders.txt"))
  }

  private static func paths(of target: String) throws -> [String] {
    let prefix = "Sources/\(target)/"
    return try Repository.files(below: "Sources/\(target)", [".swift"]).map { String($0.dropFirst(prefix.count)) }
      .filter { path in !others.contains { "\(target)/\(path)".hasPrefix("\($0)/") } }
  }

  private static func files(of target: String) throws -> [SourceFile] {
    try paths(of: target).map { SourceFile(path: $0, source: try Repository.text(of: "Sources/\(target)/\($0)")) }
  }

  /// The first column of the table of folders.
  private static func folders(inTableOf readme: String) -> [String] {
    readme.split(separator: "\n", omittingEmptySubsequences: false).drop { !$0.hasPrefix("| folder |") }.dropFirst(2)
      .prefix { $0.hasPrefix("| `") }.map { String($0.dropFirst(3).prefix { $0 != "`" }) }
  }
}
