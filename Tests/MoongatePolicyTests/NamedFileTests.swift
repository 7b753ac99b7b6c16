import Foundation
import MoongateCore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongatePolicy

/// Files that gateway.lua names.
@Suite struct NamedFileTests {
  private static func gateway(_ brand: String = "") -> String {
    """
    return gateway {
      public_url = "http://localhost:8080", region = "IN", \(brand)
      providers = {
        phone_otp = { sms = webhook { url = "http://127.0.0.1:9/", headers = { Authorization = file "sms.secret" } } },
        email_code = { mail = outbox() },
      },
    }
    """
  }

  private func folder(_ brand: String = "") throws -> TestFolder {
    try TestFolder(["gateway.lua": Self.gateway(brand), "sms.secret": "one\n", "logo.svg": "<svg/>"])
  }

  /// Attack: a reader of the log or of the events tests guesses of a secret with the id of the generation.
  @Test func theIdDoesNotDependOnSecrets() throws {
    let folder = try folder()
    let first = try folder.generation()
    try folder.scratch.write("two\n", to: "sms.secret")
    let second = try folder.generation()
    let path = folder.scratch.path("sms.secret")
    #expect(first.id == second.id && first.changeMark == second.changeMark)
    #expect(first.secretFiles.keys.sorted() == [path] && first.secretFiles != second.secretFiles)
    #expect(try folder.generation().secretFiles == second.secretFiles)
  }

  @Test func theIdDependsOnOtherNamedFiles() throws {
    let folder = try folder("brand = { logo = \"logo.svg\" },")
    let first = try folder.generation()
    try folder.scratch.write("<svg></svg>", to: "logo.svg")
    let second = try folder.generation()
    #expect(first.id != second.id && second.gateway.brand.logoFile?.bytes == Array("<svg></svg>".utf8))
  }

  /// A refused folder is tried again when the file changes because of which it was refused.
  @Test(arguments: ["mode", "missing"]) func namedFilesAreWatchedEvenIfTheyAreRefused(_ fault: String) throws {
    let folder = try folder("brand = { logo = \"logo.svg\" },")
    if fault == "mode" {
      try folder.scratch.setMode(0o644, of: "sms.secret")
    } else {
      try FileManager.default.removeItem(atPath: folder.scratch.path("sms.secret"))
    }
    let watched = Mutex<[String]>([])
    let loading = ProgramLoading(starter: NoPrograms()) { files in watched.withLock { $0 = files } }
    guard case .failure(let refused) = folder.load(programs: loading) else {
      Issue.record("the secret can be read")
      return
    }
    #expect(refused.problems.count == 1 && refused.problems[0].message.contains("sms.secret"))
    let files = watched.withLock { $0 }
    #expect(["sms.secret", "logo.svg"].allSatisfy { files.contains(folder.scratch.path($0)) }, "\(files)")
    let before = FolderSignature(folder: folder.scratch.path, also: files)
    if fault == "mode" {
      try folder.scratch.setMode(0o600, of: "sms.secret")
    } else {
      try folder.scratch.write("one", to: "sms.secret")
    }
    #expect(FolderSignature(folder: folder.scratch.path, also: files) != before)
  }

  private struct NoPrograms: ProgramStarter {
    func introduce(_ entries: [ProgramEntry]) -> [Result<any CandidateProgram, ProgramRefusal>] { [] }
  }
}
