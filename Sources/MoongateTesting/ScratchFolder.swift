import Foundation

/// A folder of a test's own, gone with the value.
package final class ScratchFolder: Sendable {
  /// Absolute, without a slash at its end.
  package let path: String

  /// - Throws: where the folder cannot be made.
  package init() throws {
    path = NSTemporaryDirectory() + "moongate-" + UUID().uuidString
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of something inside.
  package func path(_ name: String) -> String { path + "/" + name }

  /// Says who may use a file, as `chmod` does.
  package func setMode(_ mode: Int, of name: String) throws {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path(name))
  }

  /// Writes a file, and the folders above it. A new file is its owner's alone, as a file with a secret has to be.
  package func write(_ text: String, to name: String) throws {
    let file = URL(fileURLWithPath: path(name))
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    let isNew = !FileManager.default.fileExists(atPath: file.path)
    try Data(text.utf8).write(to: file)
    if isNew { try setMode(0o600, of: name) }
  }
}
