import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

@testable import MoongatePolicy

/// A stub that starts programs. Each declares one setting and accepts it.
struct StubPrograms: ProgramStarter {
  /// The reason for which each program refuses its settings.
  var refusal: String?
  let entries: Entries

  final class Entries: Sendable {
    let all = Mutex<[ProgramEntry]>([])
  }

  init(refusal: String? = nil) {
    self.refusal = refusal
    entries = Entries()
  }

  static func loading(_ stub: StubPrograms = StubPrograms()) throws -> ProgramLoading {
    ProgramLoading(starter: stub)
  }

  func introduce(_ entries: [ProgramEntry]) -> [Result<any CandidateProgram, ProgramRefusal>] {
    self.entries.all.withLock { $0 += entries }
    return entries.map { entry in
      entry.path.hasSuffix("broken.sh")
        ? .failure(ProgramRefusal(sentences: ["ended with status 3"]))
        : .success(Candidate(name: entry.name, refusal: refusal))
    }
  }

  struct Candidate: CandidateProgram, Provider {
    let name: ProviderName
    let refusal: String?

    var descriptor: ProviderDescriptor {
      ProviderDescriptor(
        name: name, beginFields: [InputField(name: "phone", kind: .phone)], submitFields: [],
        settings: [SettingField(name: "sender", kind: .text, isRequired: true, help: "who SMS are from")],
        policy: PolicySource(file: "sms_hub.py (policy)", text: TestFolder.providers[0].policy.text),
        identifierKinds: [.phone])
    }

    func accept(_ settings: ProviderSettings) throws(ProgramRefusal) -> any Provider {
      if let refusal { throw ProgramRefusal(sentences: [refusal]) }
      return self
    }
  }
}

/// `exec { … }` in gateway.lua.
@Suite struct ProgramEntryTests {
  private func folder(_ entry: String, name: String = "sms_hub", extra: [String: String] = [:]) throws -> TestFolder {
    let gateway = """
      return gateway {
        public_url = "http://localhost:8080",
        providers = {
          phone_otp = { sms = outbox() }, email_code = { mail = outbox() },
          \(name) = \(entry),
        },
      }
      """
    return try TestFolder(["gateway.lua": gateway].merging(extra) { $1 }, programs: ["hub.sh", "broken.sh"])
  }

  private func problems(_ folder: TestFolder, _ stub: StubPrograms = StubPrograms()) throws -> [String] {
    switch folder.load(
      environment: ["PATH": "/usr/bin:/bin", "TOKEN": "t0ken"], programs: try StubPrograms.loading(stub))
    {
    case .success: []
    case .failure(let refused): refused.problems.map(\.description)
    }
  }

  @Test func anEntryIsRead() throws {
    let stub = StubPrograms()
    let folder = try folder(
      #"exec { "./hub.sh", "--loud", env = { TOKEN = env "TOKEN", MODE = "soft" }, timeout = "2s", sender = "Ours" }"#)
    #expect(try problems(folder, stub) == [])
    let entry = try #require(stub.entries.all.withLock { $0.first })
    #expect(
      entry.name == "sms_hub" && entry.path.hasSuffix("/hub.sh") && entry.path.hasPrefix("/")
        && entry.arguments == ["--loud"])
    #expect(
      entry.environment.mapValues { $0.reveal() } == ["TOKEN": "t0ken", "MODE": "soft"] && entry.timeout == .seconds(2))
  }

  @Test(arguments: [
    (#"exec { "./none.sh" }"#, "program not found: ./none.sh (paths are relative to the configuration folder)"),
    (#"exec { "hub.sh" }"#, "program not found: hub.sh (write \"./hub.sh\" for one in the configuration folder)"),
    (#"exec { "./routes.lua" }"#, "is not executable: run `chmod +x ./routes.lua`"), ("exec {}", "must name a program"),
    (#"exec { "./hub.sh", timeout = "60s", sender = "x" }"#, "must be at most \"30s\""),
    (#"exec { "./hub.sh", timeout = 2, sender = "x" }"#, "a bare number is not a duration"),
    (#"exec { "./hub.sh", env = { ["A B"] = "x" }, sender = "x" }"#, "is not a valid name of an environment variable"),
    (#"exec { "./hub.sh", env = { LD_PRELOAD = "x" }, sender = "x" }"#, "LD_ variables change which code runs"),
    (#"exec { "./hub.sh", env = { TOKEN = env "NONE" }, sender = "x" }"#, "the environment variable is missing: NONE"),
    (#"exec { "./hub.sh" }"#, "providers.sms_hub.sender: is missing: who SMS are from"),
    (#"exec { "./hub.sh", sendr = "x" }"#, "unknown field; did you mean `sender`?"),
    (#"exec { "./hub.sh", sender = 7 }"#, "must be a text in quotes"),
    (#"exec { "./hub.sh", 7, sender = "x" }"#, "must be a text in quotes, not the number 7"),
    (#"exec { "./broken.sh" }"#, "providers.sms_hub: the program ./broken.sh ended with status 3"),
  ])
  func invalidProgramEntryIsReportedWithItsLine(_ entry: String, _ words: String) throws {
    // References to an unusable provider are not reported again.
    let folder = try folder(entry, extra: ["policies/sms_hub.lua": #"return policy "sms_hub" {}"#])
    let told = try problems(folder)
    #expect(told.count == 1 && told[0].hasPrefix("gateway.lua:5: ") && told[0].contains(words), "\(told)")
  }

  @Test func duplicateProviderNameIsReported() throws {
    let gateway = TestFolder.gateway.replacing(
      "email_code = { mail = outbox() }", with: #"email_code = exec { "./hub.sh" }"#)
    let told = try problems(
      try TestFolder(["gateway.lua": gateway, "policies/email_code.lua": nil], programs: ["hub.sh"]))
    #expect(told.count == 1 && told[0].contains("duplicate name"), "\(told)")
  }

  /// Two entries with the same name are one mistake and one line. Otherwise, other mistakes are reported.
  @Test(arguments: [
    #"email_code = exec { "./hub.sh", sender = "x" }, email_code = exec { "./hub.sh", sender = "y" }"#,
    #"email_code = {}, email_code = exec { "./hub.sh" }"#,
  ])
  func duplicateEntriesAreReportedOnce(_ entries: String) throws {
    let gateway = TestFolder.gateway.replacing("email_code = { mail = outbox() }", with: entries)
    let told = try problems(
      try TestFolder(["gateway.lua": gateway, "policies/email_code.lua": nil], programs: ["hub.sh"]))
    #expect(told.count == 1 && told[0].contains("email_code: is set twice in one table"), "\(told)")
  }

  @Test func duplicateNameIsReported() throws {
    let told = try problems(
      try folder(#"exec { "./hub.sh", sender = "x" }, ["sms_hub"] = exec { "./hub.sh", sender = "y" }"#))
    #expect(
      told == [
        "gateway.lua:5: sms_hub: is set twice in one table, first in line 5: rename or remove one of them"
      ])
  }

  @Test func settingsThatAreNotTakenRefuseTheFolder() throws {
    let told = try problems(
      try folder(#"exec { "./hub.sh", sender = "x" }"#), StubPrograms(refusal: "refused its settings: no such sender"))
    #expect(told == ["gateway.lua:5: providers.sms_hub: the program ./hub.sh refused its settings: no such sender"])
  }

  @Test func aFileThatAnybodyMayChangeIsRefused() throws {
    let folder = try folder(#"exec { "./hub.sh", sender = "x" }"#)
    try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder.scratch.path("hub.sh"))
    #expect(try problems(folder).first?.contains("is writable by every user of this machine") ?? false)
  }

  @Test func theProgramIsPartOfTheGeneration() throws {
    let folder = try folder(#"exec { "/bin/sh", "hub.sh", sender = "x" }"#)
    func load() throws -> any PolicyGeneration {
      try folder.load(environment: ["PATH": "/bin"], programs: try StubPrograms.loading()).get()
    }
    let first = try load()
    #expect(try load().id == first.id)
    #expect(first.registry?["sms_hub"] != nil && first.policies["sms_hub"] != nil)
    try folder.scratch.write("#!/bin/sh\n# changed\n", to: "hub.sh")
    #expect(try load().id != first.id)
  }

  /// The program sends its texts in its introduction, so a changed text makes it another provider.
  @Test(arguments: [#"exec { "./hub/hub.sh", sender = "x" }"#, #"exec { "/bin/sh", "hub/hub.sh", sender = "x" }"#])
  func thePolicyBesideItIsPartOfTheGeneration(_ entry: String) throws {
    let folder = try folder(entry)
    let watched = Mutex<[String]>([])
    try folder.scratch.write("#!/bin/sh\n", to: "hub/hub.sh")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.scratch.path("hub/hub.sh"))
    func load() throws -> String {
      let stub = try StubPrograms.loading()
      let loading = ProgramLoading(starter: stub.starter) { files in watched.withLock { $0 = files } }
      return try folder.load(environment: ["PATH": "/bin"], programs: loading).get().id
    }
    let bare = try load()
    try folder.scratch.write("return policy \"sms_hub\" {}", to: "hub/policy.lua")
    let first = try load()
    #expect(first != bare)
    #expect(try load() == first)
    try folder.scratch.write("return policy \"sms_hub\" { }", to: "hub/policy.lua")
    #expect(try load() != first)
    #expect(watched.withLock { $0.contains { $0.hasSuffix("/hub/policy.lua") } })
  }

  /// Programs read their flows and translations from their folder. A program that introduces itself differently after a
  /// restart would be refused.
  @Test(arguments: ["hub/flows/sms_hub_set.lua", "hub/words/hi.words", "hub/cases.lua"])
  func theTextsBesideItArePartOfTheGeneration(_ text: String) throws {
    let folder = try folder(#"exec { "./hub/hub.sh", sender = "x" }"#)
    let watched = Mutex<[String]>([])
    try folder.scratch.write("#!/bin/sh\n", to: "hub/hub.sh")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.scratch.path("hub/hub.sh"))
    func load() throws -> String {
      let stub = try StubPrograms.loading()
      let loading = ProgramLoading(starter: stub.starter) { files in watched.withLock { $0 = files } }
      return try folder.load(environment: ["PATH": "/bin"], programs: loading).get().id
    }
    let bare = try load()
    // Also watches a folder that does not exist yet.
    #expect(
      watched.withLock { $0.contains { $0.hasSuffix("/hub/words") } && $0.contains { $0.hasSuffix("/hub/flows") } })
    try folder.scratch.write("one", to: text)
    let first = try load()
    #expect(first != bare)
    #expect(try load() == first)
    try folder.scratch.write("two", to: text)
    #expect(try load() != first)
    #expect(watched.withLock { $0.contains { $0.hasSuffix("/" + text) } })
  }

  /// Imported modules are part of the program, so a change of one takes effect.
  @Test func theModulesBesideItArePartOfTheGeneration() throws {
    let folder = try folder(#"exec { "/bin/sh", "hub/hub.sh", sender = "x" }"#)
    let watched = Mutex<[String]>([])
    try folder.scratch.write("#!/bin/sh\n. ./more.sh\n", to: "hub/hub.sh")
    func load() throws -> String {
      let stub = try StubPrograms.loading()
      let loading = ProgramLoading(starter: stub.starter) { files in watched.withLock { $0 = files } }
      return try folder.load(environment: ["PATH": "/bin"], programs: loading).get().id
    }
    var id = try load()
    for module in ["hub/more.sh", "hub/parts/deep/one.sh"] {
      try folder.scratch.write("one", to: module)
      let with = try load()
      #expect(with != id, "\(module)")
      #expect(watched.withLock { $0.contains { $0.hasSuffix("/\(module)") } })
      try folder.scratch.write("two", to: module)
      id = try load()
      #expect(with != id, "\(module)")
    }
    // A new module is detected through its folder.
    #expect(
      watched.withLock {
        Set($0).isSuperset(of: ["hub", "hub/parts", "hub/parts/deep"].map { folder.scratch.path($0) })
      })
    #expect(watched.withLock { !$0.contains(folder.scratch.path) })
    // Package folders, files that the program writes, and files of other programs.
    for other in [
      "hub/.more.sh", "hub/sent.txt", "hub/__pycache__/more.sh", "hub/env/pyvenv.cfg", "hub/env/lib/a.sh",
      "hub/node_modules/a.sh", "other/more.sh",
      "hub/a/b/c/d/too_deep.sh",
    ] {
      try folder.scratch.write("x", to: other)
      #expect(try load() == id, "\(other)")
    }
  }

  /// A script in the configuration folder itself. The folders below belong to other programs.
  @Test func aFolderFullOfOthersCostsLittle() throws {
    let folder = try folder(#"exec { "./hub.sh", sender = "x" }"#)
    try folder.scratch.write("x", to: "other/more.sh")
    #expect(
      ProgramModules(of: folder.scratch.path("hub.sh"), configuration: folder.scratch.path).files == [
        folder.scratch.path("broken.sh")
      ])
    for number in 0..<300 { try folder.scratch.write("x", to: "many/\(number).sh") }
    let many = ProgramModules(of: folder.scratch.path("many/0.sh"), configuration: folder.scratch.path)
    #expect(many.isCut && many.files.count == ProgramModules.most)
    #expect(ProgramModules(of: "/bin/sh", configuration: "/").files == [])
    for number in 0..<300 { try folder.scratch.write("x", to: "wide/\(number)/a.txt") }
    let wide = ProgramModules(of: folder.scratch.path("wide/0.sh"), configuration: folder.scratch.path)
    #expect(wide.isCut && wide.files == [] && wide.folders.count == ProgramModules.most)
  }

  @Test func withoutProgramsTheGenerationHasNoRegistry() throws {
    #expect(try TestFolder().generation().registry == nil)
  }
}
