import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateGateway

/// A running gateway reloads a changed key file.
@Suite struct KeyReloadTests {
  private let folder: ScratchFolder
  private let log = CapturedLog()
  private var path: String { folder.path("master.key") }
  private var told: String { log.lines.joined(separator: "\n") }

  init() throws { folder = try ScratchFolder() }

  private func write(_ text: String) throws {
    try Data(text.utf8).write(to: URL(filePath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
  }

  @Test func rotationIsLoadedAndReportedOnce() async throws {
    let first = try MasterKey(.file(path: path))
    let reload = KeyReload(.file(path: path), keys: first.keys, logger: log.logger)
    reload.take(path)
    #expect(told.isEmpty)
    let ring = try await KeyFile.change(path) { try #require(try $0.adding(MasterKey.fresh()).rotated()) }
    reload.take(path)
    #expect(first.keys.currentName == ring.current.name)
    #expect(told.contains("master keys reloaded: former \(ring.oldest.name), current \(ring.current.name)"))
    for line in ring.text.split(separator: "\n") {
      #expect(!told.contains(line.split(separator: " ")[2]), "no byte of a key is logged")
    }
  }

  @Test func keyRingOfAnotherStoreIsReportedAndIgnored() async throws {
    let first = try MasterKey(.file(path: path))
    let reload = KeyReload(.file(path: path), keys: first.keys, logger: log.logger)
    let ring = try await KeyFile.change(path) { try #require(try $0.adding(MasterKey.fresh()).rotated()) }
    reload.take(path)
    let good = ring.text
    let spoiled: [(String, String)] = [
      (String(good.prefix(good.utf8.count - 20)), "line 2: its key does not match its name"),
      (good.split(separator: "\n")[0] + "\n", "it ends without a current key"), ("", "too short"),
      (String(repeating: "another installation's ", count: 3), "begins with another key"),
    ]
    for (text, sentence) in spoiled {
      try write(text)
      reload.take(path)
      #expect(told.contains(sentence), "\(text)")
      #expect(first.keys.names == [ring.current.name, ring.oldest.name])
    }
    try FileManager.default.removeItem(atPath: path)
    reload.take(path)
    #expect(
      told.contains(
        "The key file \(path) is missing. Restore it from your copy. This gateway keeps its current keys."))
    #expect(first.keys.names == [ring.current.name, ring.oldest.name])
  }
}
