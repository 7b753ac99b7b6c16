import Foundation
import MoongateConformance
import MoongateProgram
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProviderTools

/// `moongate-provider new`. `Tests/EndToEnd/test_provider_new.py` checks that its output builds and passes, if enabled.
@Suite struct ProviderNewTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().path

  private static func template(_ name: String, _ shape: ProviderNew.Shape = .code) throws -> ProviderTemplate {
    try .swift(NewProvider(name: name, shape: shape, moongate: root))
  }

  @Test(arguments: [("pigeon_post", "PigeonPost", "Pigeon post"), ("x", "X", "X"), ("a1_b2", "A1B2", "A1 b2")])
  func namesAreSpelledForSwiftAndForPeople(_ name: String, _ type: String, _ title: String) throws {
    let new = try NewProvider(name: name, shape: .code, moongate: nil)
    #expect(new.typeName == type && new.title == title)
  }

  @Test(arguments: [
    "", "Pigeon", "pigeon-post", "1pigeon", "_x", "x_", "a__b", "../x", "a/b", "pigeon post",
    String(repeating: "x", count: 49), "pin", "phone_otp",
    "proof", "foundation", "testing", "string",
  ]) func otherNamesAreRefused(_ name: String) {
    #expect(throws: StartProblem.self) { try NewProvider(name: name, shape: .code, moongate: nil) }
  }

  @Test(arguments: ProviderNew.Shape.allCases) func writesAWholePackage(_ shape: ProviderNew.Shape) throws {
    let scratch = try ScratchFolder()
    let folder = scratch.path + "/pigeon_post"
    let template = try Self.template("pigeon_post", shape)
    try template.write(to: folder)
    for path in [
      "Package.swift", "README.md", "Sources/PigeonPost/PigeonPost.swift", "Sources/PigeonPost/Resources/policy.lua",
      ".gitignore",
      "Sources/PigeonPost/Resources/hi.words", "Tests/PigeonPostTests/PigeonPostTests.swift", "gateway/Package.swift",
      "gateway/Sources/gateway/main.swift",
    ] {
      Self.isFilled(try String(contentsOfFile: folder + "/" + path, encoding: .utf8), path)
    }
    let dependency = ".package(name: \"moongate\", path: \"\(Self.root)\")"
    let package = try String(contentsOfFile: folder + "/Package.swift", encoding: .utf8)
    #expect(package.contains(dependency))
    // Its tests build without the gateway.
    #expect(!package.contains("MoongateCommand"))
    let gateway = try String(contentsOfFile: folder + "/gateway/Package.swift", encoding: .utf8)
    #expect(gateway.contains(dependency) && gateway.contains("MoongateCommand"))
    #expect(
      template.next(in: "pigeon_post").contains("swift run --package-path gateway gateway provider test pigeon_post"))
  }

  private static let languages: [(ProviderTemplate.ProgramLanguage, [String])] = [
    (.python, ["pigeon_post.py", "test_pigeon_post.py", "moongate.py"]),
    (.node, ["pigeon_post.mjs", "pigeon_post.test.mjs", "moongate.mjs"]),
    (.go, ["main.go", "main_test.go", "moongate/moongate.go", "go.mod", ".gitignore"]),
  ]

  @Test(arguments: languages, ProviderNew.Shape.allCases)
  func writesAWholeProgram(_ language: (ProviderTemplate.ProgramLanguage, [String]), _ shape: ProviderNew.Shape) throws
  {
    let template = ProviderTemplate.program(
      try NewProvider(name: "pigeon_post", shape: shape, moongate: nil), in: language.0)
    let flows = shape == .full ? ["cases.lua", "flows/pigeon_post_set.lua", "flows/pigeon_post_disable.lua"] : []
    #expect(
      template.files.keys.sorted()
        == (language.1 + flows + ["README.md", "policy.lua", "subject.json", "words/hi.words"]).sorted())
    for (path, text) in template.files { Self.isFilled(text, path) }
    #expect(template.files["policy.lua"]?.contains("policy \"pigeon_post\"") == true)
  }

  /// No placeholder of the templates is left.
  private static func isFilled(_ text: String, _ path: String) {
    #expect(!text.isEmpty && text.hasSuffix("\n"), "\(path)")
    #expect(
      text.firstMatch(of: /@[A-Z]+@|new_provider|NewProvider|new-provider|New provider/) == nil, "\(path) has a gap")
  }

  @Test func nothingIsOverwritten() throws {
    let scratch = try ScratchFolder()
    try scratch.write("mine", to: "pigeon_post/README.md")
    #expect(throws: StartProblem.self) { try Self.template("pigeon_post").write(to: scratch.path + "/pigeon_post") }
    #expect(try String(contentsOfFile: scratch.path + "/pigeon_post/README.md", encoding: .utf8) == "mine")
    try scratch.write("mine", to: "file")
    #expect(throws: StartProblem.self) { try Self.template("pigeon_post").write(to: scratch.path + "/file") }
  }

  @Test(arguments: [
    ("https://git.example/moongate.git", ".package(url: \"https://git.example/moongate.git\", branch: \"main\")"),
    ("git@git.example:moongate.git", ".package(url: \"git@git.example:moongate.git\", branch: \"main\")"),
  ]) func sourcesMayBeElsewhere(_ named: String, _ dependency: String) throws {
    #expect(try MoongateSource(named).dependency == dependency)
  }

  @Test(arguments: ["/", "/nowhere", "https://x\", path: \"/"]) func sourcesMustBeThere(_ named: String) {
    #expect(throws: StartProblem.self) { try MoongateSource(named) }
  }

  /// Attack: someone uses an open session to replace an existing phrase.
  @Test func aNewProgramThatVerifiesHoldsTheSuite() async throws {
    let scratch = try ScratchFolder()
    let folder = scratch.path("secret_phrase")
    try ProviderTemplate.program(NewProvider(name: "secret_phrase", shape: .full, moongate: nil), in: .python).write(
      to: folder)
    let file = try ConformanceSubjectFile(path: folder + "/subject.json")
    let tried = try TriedProgram(folder + "/secret_phrase.py", file)
    defer { tried.end() }
    var subject = ConformanceSubject(of: tried.provider.descriptor)
    file.change(&subject)
    let report = await Conformance.run(tried.provider, subject)
    #expect(report.findings == [])
    #expect(report.lines.contains { $0.rule == .proof && $0.verdict == .held })
    #expect(tried.provider.descriptor.outcome(.alreadySet)?.isFailure == false)
  }

  @Test func nextStepsDoNotMentionCopyingIfATargetWasGiven() throws {
    let new = try NewProvider(name: "pigeon_post", shape: .code, moongate: nil)
    #expect(ProviderTemplate.program(new, in: .python).next(in: "pigeon_post").contains("cp -r . …/config/pigeon_post"))
    let placed = ProviderTemplate.program(new, in: .python, isPlaced: true).next(in: "config/pigeon_post")
    #expect(!placed.contains("cp -r") && placed.contains("moongate-provider test ./pigeon_post.py"))
  }

  @Test(arguments: [
    ("chat_code.py", true), ("./chat_code", true), ("a/b", true), ("chat_code", false), ("totp", false),
  ])
  func namesWithADotArePrograms(_ name: String, _ isPath: Bool) { #expect(ProviderTest.isPath(name) == isPath) }

  // MARK: reports

  @Test func aReportHasALineForEachRule() async throws {
    var subject = ConformanceSubject(of: Providers.shipped[0].descriptor)
    subject.spellings.append(["phone": .text("+31612345678")])
    let report = await Conformance.run(Providers.shipped[0], subject)
    let text = ProviderTest.text(report, colour: false)
    #expect(text.hasPrefix("phone_otp\n  ✓ descriptor    its declaration is well formed and stable\n"))
    #expect(
      text.contains(
        "  ✗ spelling      one person has one identifier\n      Two spellings of one user give two identifiers.\n      Return one"
      ))
    #expect(text.contains("  - proof         does not apply: the core creates, stores and compares the codes\n"))
    #expect(text.hasSuffix("9 held, 1 broken, 14 not applying"))
  }
}
