import Foundation
import MoongateCore
import MoongateProgram

/// The place of the master keys, for commands that change them.
struct KeySource {
  private let location: KeyLocation

  init(_ location: KeyLocation) { self.location = location }

  /// Reads the existing keys. Creates none.
  func read() throws(StartProblem) -> MasterKeys {
    if case .file(let path) = location, !FileManager.default.fileExists(atPath: path) {
      throw StartProblem("There is no key file \(path). A gateway creates it at its first start.", status: .couldNotRun)
    }
    return try MasterKey(location).masters
  }

  /// Replaces the keys in the key file. If the keys come from a variable, prints them for the operator to set.
  /// - Parameter body: returns the new keys. If it throws, nothing changes.
  func change(_ body: (MasterKeys) async throws -> MasterKeys) async throws {
    switch location {
    case .file(let path):
      let before = try read().oldest.name
      let changed = try await KeyFile.change(path, body)
      printNotice(
        "Back up \(path) again, apart from the store. Older backups of the store need the older copy.")
      if changed.oldest.name == before { printNotice("A running gateway reloads it within a second.") }
    case .value:
      let changed = try await body(try read())
      printNotice(
        "The key comes from the environment. Set its variable to all of these lines, and restart the gateway:")
      print(changed.text, terminator: "")
    case .credential(let path):
      let changed = try await body(try read())
      let name = (path as NSString).lastPathComponent
      printNotice(
        "The key comes from systemd. Write all of these lines to the file of LoadCredential=\(name), and restart the gateway:"
      )
      print(changed.text, terminator: "")
    }
  }

  /// Writes to standard error, because standard output may contain the keys.
  func printNotice(_ sentence: String) { LineLog.standardError(sentence + "\n") }
}
