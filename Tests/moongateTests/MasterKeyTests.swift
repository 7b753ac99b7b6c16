import Foundation
import MoongateCore
import MoongateProgram
import MoongateTesting
import Testing

@testable import MoongateGateway

@Suite("The master key") struct MasterKeyTests {
  let folder: ScratchFolder

  init() throws { folder = try ScratchFolder() }

  private var path: String { folder.path("keys/master.key") }

  /// The error for a key file; nil if it is accepted.
  private func problem(_ location: KeyLocation) -> String? {
    do {
      _ = try MasterKey(location)
      return nil
    } catch {
      return error.sentence
    }
  }

  @Test("is created once, readable by its owner only, and read again") func made() throws {
    let first = try MasterKey(.file(path: path))
    #expect(first.madeFile == path)
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    #expect(attributes[.size] as? Int == 32)
    let second = try MasterKey(.file(path: path))
    #expect(second.madeFile == nil)
    #expect(second.keys.fingerprint == first.keys.fingerprint)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder.path("keys")) == ["master.key"], "no draft is left")
  }

  @Test("has a folder whose problem is told in the system's words") func folderThatCannotBeMade() throws {
    try FileManager.default.createSymbolicLink(atPath: folder.path("keys"), withDestinationPath: "/nonexistent/keys")
    #expect(
      problem(.file(path: path))
        == "The folder \(folder.path("keys")) for the key file cannot be created: File exists. "
        + "Check the path: every part of it must be a folder, not a file or a dangling symbolic link.")
  }

  @Test("is the same for processes that start at once") func race() async throws {
    let path = path
    let fingerprints = try await withThrowingTaskGroup(of: [UInt8].self) { group in
      for _ in 0..<16 { group.addTask { try MasterKey(.file(path: path)).keys.fingerprint } }
      return try await group.reduce(into: Set<[UInt8]>()) { $0.insert($1) }
    }
    #expect(fingerprints.count == 1)
  }

  /// Attack: another user of the machine who can read the key can compute the HMAC of any code and sign any assertion.
  @Test("is refused if others than its owner have access", arguments: [0o640, 0o604, 0o660, 0o620, 0o601, 0o777])
  func modes(mode: Int) throws {
    _ = try MasterKey(.file(path: path))
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    #expect(
      problem(.file(path: path))
        == "The key file \(path) has mode \(String(mode, radix: 8)): users other than its owner can access it. Run: chmod 600 \(path)"
    )
  }

  @Test("is not created in place of a missing credential") func missingCredential() {
    #expect(
      problem(.credential(path: path))
        == "The credential \(path) with the master key is missing. Restart the gateway's unit.")
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("is refused if its size is wrong", arguments: [0, 1, 31, 4097, 200_000]) func sizes(size: Int) throws {
    _ = try MasterKey(.file(path: path))
    try Data(repeating: 7, count: size).write(to: URL(filePath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    let told = try #require(problem(.file(path: path)))
    #expect(told.contains(size < 32 ? "too short" : "too long"))
  }

  @Test("is refused if it is a folder or a pipe") func kinds() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    #expect(problem(.file(path: path)) == "The key file \(path) is not a regular file.")
    let pipe = folder.path("pipe")
    #expect(mkfifo(pipe, 0o600) == 0)
    #expect(problem(.file(path: pipe)) == "The key file \(pipe) is not a regular file.")
  }

  @Test("is removed by undo only if this process created it") func undo() throws {
    let made = try MasterKey(.file(path: path))
    try MasterKey(.file(path: path)).undo()
    #expect(FileManager.default.fileExists(atPath: path))
    made.undo()
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("may be a value of at least 32 bytes") func value() {
    #expect(problem(.value(SecretText(String(repeating: "a", count: 32)))) == nil)
    let short = problem(.value(SecretText("hunter2 hunter2")))
    #expect(short?.contains("too short") == true)
    #expect(short?.contains("hunter2") == false)
  }

  @Test("of another user names the user who can run the command", .enabled(if: geteuid() == 0)) func otherOwner() throws
  {
    _ = try MasterKey(.file(path: path))
    #expect(chown(path, 65534, 65534) == 0)
    #expect(
      problem(.file(path: path))
        == "The key file \(path) belongs to another user, nobody. If that is the gateway's user, run the command as that user: sudo -u nobody moongate …"
    )
  }

  @Test("becomes the oldest key of a ring when rotated; the file mode is kept") func rotation() async throws {
    let first = try MasterKey(.file(path: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: path)
    // The remains of a process that was killed during another rotation.
    try Data("current".utf8).write(to: URL(filePath: path + ".new"))
    _ = try await KeyFile.change(path) { try #require(try $0.adding(MasterKey.fresh()).rotated()) }
    let second = try MasterKey(.file(path: path))
    #expect(second.keys.fingerprint == first.keys.fingerprint && second.keys.currentName != first.keys.currentName)
    #expect(second.masters.members.map(\.role) == [.former, .current])
    #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o400)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder.path("keys")) == ["master.key"], "no draft is left")
  }

  @Test("is unchanged if a change is refused, and a link to it stays a link") func unchanged() async throws {
    _ = try MasterKey(.file(path: path))
    let before = try Data(contentsOf: URL(filePath: path))
    await #expect(throws: StartProblem.self) { try await KeyFile.change(path) { _ in throw StartProblem("no") } }
    #expect(try Data(contentsOf: URL(filePath: path)) == before)
    let link = folder.path("link")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
    _ = try await KeyFile.change(link) { try #require(try $0.adding(MasterKey.fresh()).rotated()) }
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == path)
    #expect(try MasterKey(.file(path: path)).masters.members.count == 2)
    await #expect(throws: StartProblem.self) { try await KeyFile.change(folder.path("none")) { $0 } }
  }

  /// A damaged key file must not be replaced by a new key.
  @Test("of a damaged ring is reported by line, and none is created") func damaged() async throws {
    _ = try MasterKey(.file(path: path))
    let ring = try await KeyFile.change(path) { try #require(try $0.adding(MasterKey.fresh()).rotated()) }
    let whole = ring.text
    let cut = whole.prefix(whole.utf8.count - 20)
    try Data(cut.utf8).write(to: URL(filePath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    let told = try #require(problem(.file(path: path)))
    #expect(told.hasPrefix("The key file \(path), line 2: its key does not match its name"))
    #expect(try Data(contentsOf: URL(filePath: path)) == Data(cut.utf8))
    await #expect(throws: StartProblem.self) { try await KeyFile.change(path) { $0 } }
    #expect(problem(.value(SecretText(whole))) == nil)
    #expect(problem(.value(SecretText(String(cut))))?.hasPrefix("The key in the environment, line 2: ") == true)
    try Data(whole.utf8).write(to: URL(filePath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
    #expect(problem(.file(path: path))?.contains("mode 640") == true)
    await #expect(throws: StartProblem.self) { try await KeyFile.change(path) { $0 } }
  }
}
