import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting

/// A process of its own for what the store's tests do to processes.
///
/// `store-writer STORE FIRST` writes rounds of `Crash` without end, from that number on, and says on standard output
/// which have been acknowledged, a number a line, until it is killed.
/// `store-writer STORE attack` runs a `ConcurrentAttack` and prints by how many KiB the peak memory grew.
/// `store-writer STORE leave` ends while its threads connect.
///
/// STORE is a file of SQLite's, or a connection string.
@main
enum StoreWriter {
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 3 else { exit(2) }
    guard arguments[2] != "leave" else { return leave(arguments[1]) }
    let store = try TestedStore.open(arguments[1])
    guard var number = Int(arguments[2]) else {
      // The program itself and its libraries are mapped: how much of them is resident is the system's affair.
      let before = try peak()
      try await ConcurrentAttack.run(on: store)
      return try say(peak() - before)
    }
    while true {
      try await Crash.act(number, on: store)
      try say(number)
      number += 1
    }
  }

  private static func leave(_ address: String) {
    for _ in 0..<8 {
      Thread.detachNewThread { while true { _ = try? PostgresStore(url: address, keyFingerprint: [1]) } }
    }
    Thread.sleep(forTimeInterval: 0.2)
  }

  private static func say(_ number: Int) throws {
    try FileHandle.standardOutput.write(contentsOf: Data("\(number)\n".utf8))
  }

  /// The most memory that this process has had resident, in KiB.
  private static func peak() throws -> Int {
    let line = try String(contentsOfFile: "/proc/self/status", encoding: .utf8).split(separator: "\n").first {
      $0.hasPrefix("VmHWM:")
    }
    return line?.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }.first ?? .max
  }
}
