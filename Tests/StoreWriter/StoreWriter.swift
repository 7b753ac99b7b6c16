import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting

/// Writes to a store without end and says on standard output what has been acknowledged, a number a line, until it is
/// killed. `SurvivalTests` kills it.
///
/// Usage: `store-writer STORE FIRST`. Number n makes account `ac_n` and session `se_n`, wraps up flow `fl_n`, charges one
/// failure to `tries`, leaves one try of `open n` unsettled and locks `locked n`.
@main
enum StoreWriter {
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, var number = Int(arguments[2]) else { exit(2) }
    let store = try SQLiteStore(path: arguments[1], keyFingerprint: [1])
    while true {
      try await Crash.act(number, on: store)
      try FileHandle.standardOutput.write(contentsOf: Data("\(number)\n".utf8))
      number += 1
    }
  }
}
