import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

@testable import MoongatePolicy

@Suite struct WatcherTests {
  @Test func changesAreReadOnceTheFolderIsStable() {
    var detector = ChangeDetector(0)
    #expect(
      [0, 0, 1, 2, 3, 3, 3, 3].map { detector.observe($0) } == [
        .quiet, .quiet, .settling, .settling, .settling, .ready, .quiet, .quiet,
      ])
  }

  @Test func revertedChangeIsRead() {
    var detector = ChangeDetector(0)
    #expect([1, 0, 0, 0].map { detector.observe($0) } == [.settling, .settling, .ready, .quiet])
  }

  @Test func continuousWritesDoNotHideAChange() {
    var detector = ChangeDetector(0)
    #expect((1...10).map { detector.observe($0) } == Array(repeating: .settling, count: 9) + [.ready])
  }

  @Test func signatureCoversTheReadFiles() throws {
    let folder = try TestFolder()
    let path = folder.scratch.path
    let first = FolderSignature(folder: path)
    #expect(FolderSignature(folder: path) == first)
    try folder.scratch.write("x", to: ".routes.lua.swp")
    try folder.scratch.write("x", to: "data/moongate.db")
    try folder.scratch.write("x", to: "policies/.x.lua")
    #expect(FolderSignature(folder: path) == first)
    try folder.scratch.write("return tests {}", to: "tests/a.lua")
    let second = FolderSignature(folder: path)
    #expect(second != first)
    try folder.scratch.write(TestFolder.routes + " ", to: "routes.lua")
    let third = FolderSignature(folder: path)
    #expect(third != second)
    // Another file with the same size and time: editors write a new file and rename it.
    let modified = try FileManager.default.attributesOfItem(atPath: path + "/routes.lua")[.modificationDate] as? Date
    try folder.scratch.write(TestFolder.routes + "\n", to: "new")
    try FileManager.default.removeItem(atPath: path + "/routes.lua")
    try FileManager.default.moveItem(atPath: path + "/new", toPath: path + "/routes.lua")
    if let modified {
      try FileManager.default.setAttributes([.modificationDate: modified], ofItemAtPath: path + "/routes.lua")
    }
    #expect(FolderSignature(folder: path) != third)
    try FileManager.default.removeItem(atPath: path + "/gateway.lua")
    #expect(FolderSignature(folder: path) != third)
  }

  /// The test controls the pauses and does not wait for a clock.
  @Test func callsBackOnceForEachChange() async throws {
    let folder = try TestFolder()
    let pauses = Mutex(0)
    let calls = Mutex<[Int]>([])
    let watcher = ConfigurationWatcher(folder: folder.scratch.path)
    struct Enough: Error {}
    await watcher.run(
      pause: { _ in
        let number = pauses.withLock {
          $0 += 1; return $0
        }
        if number == 3 || number == 9 {
          try folder.scratch.write(TestFolder.routes + String(repeating: " ", count: number), to: "routes.lua")
        }
        if number == 15 { throw Enough() }
      }, onChange: { calls.withLock { $0.append(pauses.withLock { $0 }) } })
    #expect(calls.withLock { $0 } == [4, 10])
  }

  @Test func aChangeBeforeItRunsIsSeen() async throws {
    let folder = try TestFolder()
    let watcher = ConfigurationWatcher(folder: folder.scratch.path)
    try folder.scratch.write(TestFolder.routes + " ", to: "routes.lua")
    let state = Mutex((pauses: 0, calls: 0))
    struct Enough: Error {}
    await watcher.run(
      pause: { _ in
        if state.withLock({
          $0.pauses += 1; return $0.pauses
        }) > 5 {
          throw Enough()
        }
      }, onChange: { state.withLock { $0.calls += 1 } })
    #expect(state.withLock { $0.calls } == 1)
  }

  @Test func someSettingsNeedARestart() throws {
    let started = try TestFolder().generation().gateway
    let changed = TestFolder.gateway.replacing(
      "region", with: "listen = \"127.0.0.1:1\",\nstore = \"sqlite:other.db\",\napp_api = true,\nregion")
    let now = try TestFolder(["gateway.lua": changed]).generation().gateway
    #expect(
      now.changesThatNeedRestart(since: started).map(\.description).filter { !$0.contains("key:") } == [
        "gateway.lua:3: listen: changed; takes effect after a restart of the gateway",
        "gateway.lua:4: store: changed; takes effect after a restart of the gateway",
        "gateway.lua:5: app_api: changed; takes effect after a restart of the gateway",
      ])
    #expect(started.changesThatNeedRestart(since: started) == [])
  }
}
