import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateCommand

/// The answers of `moongate init` and the written files.
@Suite struct SetupTests {
  private func problem<Value>(_ body: () throws -> Value) -> String? {
    do {
      _ = try body()
      return nil
    } catch {
      return (error as? SetupAnswers.Problem)?.sentence ?? (error as? StartProblem)?.sentence
    }
  }

  private func answers(_ store: String, _ messages: String) throws -> SetupAnswers {
    SetupAnswers(
      publicURL: try SetupAnswers.publicURL("https://auth.example.com"),
      upstream: try SetupAnswers.upstream("http://127.0.0.1:3000"),
      store: try SetupAnswers.store(store), messages: try SetupAnswers.messages(messages, host: "auth.example.com"))
  }

  private func files(_ store: String, _ messages: String, service: String = "Wallet") throws -> SetupFolder {
    SetupFolder(try answers(store, messages), state: "data", region: "IN", service: service)
  }

  @Test func invalidAnswersAreReported() {
    #expect(problem { try SetupAnswers.publicURL("http://auth.example.com") }?.contains("Use https.") ?? false)
    #expect(problem { try SetupAnswers.publicURL("auth.example.com") }?.contains("is not a public URL") ?? false)
    #expect(
      problem { try SetupAnswers.upstream("http://127.0.0.1:3000/path") }?.contains("is not the URL of a service")
        ?? false)
    #expect(
      problem { try SetupAnswers.messages("pigeons", host: "a.example") }?.contains("is not a message service")
        ?? false)
    #expect(
      problem { try SetupAnswers.messages("smtp://me@mail.example.com", host: "a.example") }?.contains(
        "both user and password") ?? false)
  }

  /// Attack: a password is repeated on a terminal that others see or in an installation log.
  @Test func passwordInAnAnswerIsNotRepeated() {
    #expect(problem { try SetupAnswers.store("mysql://root:hunter2@db/x") }?.contains("hunter2") == false)
  }

  /// Attack: a password in a world-readable file, or in version control with the configuration.
  @Test func passwordsAreWrittenToSeparateFiles() throws {
    let made = try files("postgres://moongate:hunter2@db.example.com/moongate", "smtp://me:s3cret@mail.example.com")
    #expect(made.secrets == ["secrets/store", "secrets/smtp.password"])
    #expect(made.files["secrets/smtp.password"] == "s3cret\n")
    let gateway = try #require(made.files["gateway.lua"])
    #expect(
      !gateway.contains("hunter2") && !gateway.contains("s3cret") && gateway.contains("store = file \"secrets/store\""))
    let folder = try ScratchFolder()
    try made.write(to: folder.path("new"))
    for name in made.secrets {
      let mode = try FileManager.default.attributesOfItem(atPath: folder.path("new/\(name)"))[.posixPermissions] as? Int
      #expect(mode == 0o600)
    }
  }

  /// Attack: an answer with a quote injects Lua code.
  @Test func answersAreEscapedInLua() throws {
    #expect(SetupFolder.quoted("a\"b\\c\nd") == #""a\"b\\c\010d""#)
    let gateway = try #require(
      try files("sqlite", "smtp://localhost", service: "@KEY@\" }, os = { \"").files["gateway.lua"])
    #expect(gateway.contains(#"service = "@KEY@\" }, os = { \"""#))
  }

  @Test func folderThatCannotBeMadeIsExplained() throws {
    #expect(
      problem { try files("sqlite", "smtp://localhost").write(to: "/proc/moongate/new") }
        == "/proc/moongate/new could not be written: No such file or directory. "
        + "Check the path: every part of it must be a folder, not a file or a dangling symbolic link.")
  }

  /// What to do depends on the reason. Foundation names only some of these errors itself.
  @Test(
    arguments: [
      (CocoaError(.fileWriteOutOfSpace), "No space left on device. Free some space on its disk."),
      (POSIXError(.ENOSPC), "No space left on device. Free some space on its disk."),
      (
        CocoaError(.fileWriteNoPermission),
        "Permission denied. Let this user write there, or choose another folder."
      ),
      (POSIXError(.EROFS), "Read-only file system. Choose a folder on a file system that can be written."),
    ] as [(any Error, String)]) func fileProblemSaysWhatToDo(_ error: any Error, _ sentence: String)
  {
    #expect(FileProblem(error).description == sentence)
  }

  @Test func aFolderThatIsNotEmptyIsLeftAlone() throws {
    let folder = try ScratchFolder()
    try folder.write("mine", to: "gateway.lua")
    #expect(
      problem { try files("sqlite", "smtp://localhost").write(to: folder.path) }
        == "\(folder.path) is not empty (gateway.lua) and is not overwritten. Choose an empty or a new folder."
    )
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["gateway.lua"])
    #expect(try String(contentsOfFile: folder.path("gateway.lua"), encoding: .utf8) == "mine")
  }
}
