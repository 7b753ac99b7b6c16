import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateCommand

@Suite("The master key") struct MasterKeyTests {
  let folder: ScratchFolder

  init() throws { folder = try ScratchFolder() }

  private var path: String { folder.path("keys/master.key") }

  /// What a key file is refused with; nil where it is taken.
  private func problem(_ location: KeyLocation) -> String? {
    do {
      _ = try MasterKey(location)
      return nil
    } catch {
      return error.sentence
    }
  }

  @Test("is made once, for its owner only, and read again") func made() throws {
    let first = try MasterKey(.file(path: path))
    #expect(first.madeFile == path)
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    #expect(attributes[.size] as? Int == 32)
    let second = try MasterKey(.file(path: path))
    #expect(second.madeFile == nil)
    #expect(second.keys.fingerprint == first.keys.fingerprint)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("keys")) == ["master.key"], "no draft is left")
  }

  @Test("is one key when many processes start at once") func race() async throws {
    let path = path
    let fingerprints = try await withThrowingTaskGroup(of: [UInt8].self) { group in
      for _ in 0..<16 { group.addTask { try MasterKey(.file(path: path)).keys.fingerprint } }
      return try await group.reduce(into: Set<[UInt8]>()) { $0.insert($1) }
    }
    #expect(fingerprints.count == 1)
  }

  /// Attack: another user of the machine who can read the key can make any code's HMAC and any assertion.
  @Test("is refused where others than its owner may use it", arguments: [0o640, 0o604, 0o660, 0o620, 0o601, 0o777]) func modes(mode: Int) throws {
    _ = try MasterKey(.file(path: path))
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    #expect(
      problem(.file(path: path))
        == "The key file \(path) has mode \(String(mode, radix: 8)): others than its owner may use it. Run: chmod 600 \(path)")
  }

  @Test("is refused where it is no key", arguments: [0, 1, 31, 4097]) func sizes(size: Int) throws {
    _ = try MasterKey(.file(path: path))
    try Data(repeating: 7, count: size).write(to: URL(filePath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    let told = try #require(problem(.file(path: path)))
    #expect(told.contains(size < 32 ? "too short" : "too long"))
  }

  @Test("is refused where it is a folder or a pipe") func kinds() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    #expect(problem(.file(path: path)) == "The key file \(path) is no regular file.")
    let pipe = folder.path("pipe")
    #expect(mkfifo(pipe, 0o600) == 0)
    #expect(problem(.file(path: pipe)) == "The key file \(pipe) is no regular file.")
  }

  @Test("that was made for nothing is taken back, and no other") func undo() throws {
    let made = try MasterKey(.file(path: path))
    try MasterKey(.file(path: path)).undo()
    #expect(FileManager.default.fileExists(atPath: path))
    made.undo()
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("may come as a value, of 32 bytes at least") func value() {
    #expect(problem(.value(SecretText(String(repeating: "a", count: 32)))) == nil)
    let short = problem(.value(SecretText("hunter2 hunter2")))
    #expect(short?.contains("too short") == true)
    #expect(short?.contains("hunter2") == false)
  }
}
