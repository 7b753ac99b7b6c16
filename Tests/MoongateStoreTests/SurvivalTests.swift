import Foundation
import GRDB
import MoongateCore
import MoongateStore
import MoongateTesting
import Testing

/// Killed by SIGKILL at any point, the store still has everything that it acknowledged.
@Suite(.serialized) struct SurvivalTests {
  @Test func nothingAcknowledgedIsLost() async throws {
    let folder = try ScratchFolder()
    let path = folder.path("moongate.db")
    let random = SeededRandom(seed: 7)
    var rounds: [Int] = []
    for kills in 1...6 {
      let first = rounds.last.map { $0 + 2 } ?? 0
      rounds += try kill(
        after: Int(random.uniform(below: 60)) + 1, spinning: random.uniform(below: 20_000), path: path, first: first)
      #expect(
        try await DatabaseQueue(path: path).read { db in try String.fetchOne(db, sql: "PRAGMA integrity_check") }
          == "ok")
      let store = try SQLiteStore(path: path, keyFingerprint: [1])
      #expect(try await Crash.missing(rounds, kills: kills, in: store) == [])
      try store.close()
    }
  }

  /// Starts a writer and kills it some instructions after it has printed this many lines.
  /// - Returns: the rounds that it has acknowledged.
  private func kill(after lines: Int, spinning: UInt32, path: String, first: Int) throws -> [Int] {
    let writer = Process()
    writer.executableURL = storeWriter
    writer.arguments = [path, String(first)]
    let pipe = Pipe()
    writer.standardOutput = pipe
    try writer.run()
    var output = Data()
    while output.count(where: { $0 == UInt8(ascii: "\n") }) < lines {
      let more = pipe.fileHandleForReading.availableData
      if more.isEmpty { break }
      output += more
    }
    for _ in 0..<spinning { sched_yield() }
    Foundation.kill(writer.processIdentifier, SIGKILL)
    output += pipe.fileHandleForReading.readDataToEndOfFile()
    writer.waitUntilExit()
    #expect(writer.terminationReason == .uncaughtSignal && writer.terminationStatus == SIGKILL)
    return String(decoding: output, as: UTF8.self).split(separator: "\n").compactMap { Int($0) }
  }
}
