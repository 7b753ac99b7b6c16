import Foundation
import MoongateConformance
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCommand

/// `moongate provider new`. That what it writes builds and passes is tried by `Tests/EndToEnd/test_provider_new.py`, where it is asked for.
@Suite struct ProviderNewTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

  private static func template(_ name: String, _ shape: ProviderNew.Shape = .code) throws -> ProviderTemplate {
    try .swift(NewProvider(name: name, shape: shape, moongate: root))
  }

  @Test(arguments: [("pigeon_post", "PigeonPost", "Pigeon post"), ("x", "X", "X"), ("a1_b2", "A1B2", "A1 b2")])
  func namesAreSpelledForSwiftAndForPeople(_ name: String, _ type: String, _ title: String) throws {
    let new = try NewProvider(name: name, shape: .code, moongate: nil)
    #expect(new.typeName == type && new.title == title)
  }

  @Test(arguments: [
    "", "Pigeon", "pigeon-post", "1pigeon", "_x", "x_", "a__b", "../x", "a/b", "pigeon post", String(repeating: "x", count: 49), "pin", "phone_otp",
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
      "Package.swift", "README.md", "Sources/PigeonPost/PigeonPost.swift", "Sources/PigeonPost/policy.lua", "Sources/gateway/main.swift",
      "Tests/PigeonPostTests/ConformanceTests.swift", ".gitignore",
    ] {
      let text = try String(contentsOfFile: folder + "/" + path, encoding: .utf8)
      #expect(text.firstMatch(of: /@[A-Z]+@/) == nil, "\(path) has a gap")
      #expect(!text.isEmpty && text.hasSuffix("\n"))
    }
    #expect(try String(contentsOfFile: folder + "/Package.swift", encoding: .utf8).contains(".package(name: \"moongate\", path: \"\(Self.root)\")"))
    #expect(template.next(in: "pigeon_post").contains("swift run gateway provider test pigeon_post"))
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
  ]) func sourcesMayBeElsewhere(_ named: String, _ dependency: String) throws { #expect(try MoongateSource(named).dependency == dependency) }

  @Test(arguments: ["/", "/nowhere", "https://x\", path: \"/"]) func sourcesMustBeThere(_ named: String) {
    #expect(throws: StartProblem.self) { try MoongateSource(named) }
  }

  /// Attack: a session that was left open chooses another phrase over the one that is there.
  @Test func aNewProgramThatVerifiesHoldsTheSuite() async throws {
    let scratch = try ScratchFolder()
    let folder = scratch.path("secret_phrase")
    try ProviderTemplate.python(NewProvider(name: "secret_phrase", shape: .full, moongate: nil)).write(to: folder)
    let file = try SubjectFile(path: folder + "/subject.json")
    let tried = try TriedProgram(folder + "/secret_phrase.py", file)
    defer { tried.end() }
    var subject = ConformanceSubject(of: tried.provider.descriptor)
    file.change(&subject)
    let report = await Conformance.run(tried.provider, subject)
    #expect(report.findings == [])
    #expect(report.lines.contains { $0.rule == .proof && $0.verdict == .held })
    #expect(tried.provider.descriptor.outcome(.alreadySet)?.isFailure == false)
  }

  /// The same of a package, which is built where it is asked for.
  @Test func aNewPackageThatVerifiesSetsOnce() throws {
    let text = try #require(try Self.template("secret_phrase", .full).files["Sources/SecretPhrase/SecretPhrase.swift"])
    for part in [
      "Outcome(.alreadySet, \"You have chosen a phrase already.\", isFailure: false)", "step.flow != \"secret_phrase_reset\" ? .refused(.alreadySet)",
      "if let obstacle = Self.obstacle(step) { return obstacle }", "record: .replaceOnce(Array(try await hasher.hash(typed).utf8))",
    ] {
      #expect(text.contains(part), "\(part)")
    }
  }

  @Test func whoSaidWhereItGoesIsNotToldToCopyIt() throws {
    let new = try NewProvider(name: "pigeon_post", shape: .code, moongate: nil)
    #expect(ProviderTemplate.python(new).next(in: "pigeon_post").contains("cp -r . …/config/pigeon_post"))
    let placed = ProviderTemplate.python(new, isPlaced: true).next(in: "config/pigeon_post")
    #expect(!placed.contains("cp -r") && placed.contains("moongate provider test ./pigeon_post.py"))
  }

  @Test(arguments: [("chat_code.py", true), ("./chat_code", true), ("a/b", true), ("chat_code", false), ("totp", false)])
  func whatHasADotIsAProgram(_ name: String, _ isPath: Bool) { #expect(ProviderTest.isPath(name) == isPath) }

  // MARK: the suite's words

  @Test func aReportHasALineForEachRule() async throws {
    var subject = ConformanceSubject(of: Providers.shipped[0].descriptor)
    subject.spellings.append(["phone": .text("+31612345678")])
    let report = await Conformance.run(Providers.shipped[0], subject)
    let text = ProviderTest.text(report, colour: false)
    #expect(text.hasPrefix("phone_otp\n  ✓ descriptor     its declaration is well formed and stable\n".replacing("     its", with: "    its")))
    #expect(text.contains("  ✗ spelling      one person has one identifier\n      Two spellings of one person are two identifiers.\n      Give one"))
    #expect(text.contains("  - proof         does not apply: the core makes, keeps and compares the codes\n"))
    #expect(text.hasSuffix("9 held, 1 broken, 6 not applying"))
  }

  @Test func aSubjectIsReadFromAFile() throws {
    let scratch = try ScratchFolder()
    try scratch.write(
      #"{"spellings":[{"word":"a"}],"right":{"word":"x","flag":true,"n":1},"settings":{"birds":3,"on":false,"names":["a"],"loft":"n"},"one_time":true,"lifetime":"90s","record":"r","secrets":{"token":"t"},"sends_by":{"site":"url"},"site_answers":{"/a":[1]}}"#,
      to: "subject.json")
    var subject = ConformanceSubject(of: Providers.shipped[2].descriptor)
    try SubjectFile(path: scratch.path + "/subject.json").change(&subject)
    #expect(subject.spellings == [["word": .text("a")]] && subject.isOneTime && subject.setsUp)
    #expect(subject.settings == ["birds": 3, "on": false, "names": ["a"], "loft": "n"])
    #expect(subject.lifetime == .seconds(90) && subject.record == Array("r".utf8) && subject.secrets == ["token": "t"])
    let file = try SubjectFile(path: scratch.path + "/subject.json")
    #expect(file.sendsBy == .site(setting: "url") && file.siteAnswers == ["/a": Array("[1]".utf8)])
    for bad in ["", "[]", "{\"right\":1}", "{\"lifetime\":\"soon\"}", "{\"sends_by\":{}}", "{\"rigth\":{}}", "{\"site_answers\":1}"] {
      try scratch.write(bad, to: "bad.json")
      #expect(throws: StartProblem.self) { try SubjectFile(path: scratch.path + "/bad.json") }
    }
    #expect(throws: StartProblem.self) { try SubjectFile(path: scratch.path + "/none.json") }
  }
}
