import Foundation

/// A temporary folder for a test. It is removed with the value.
package final class ScratchFolder: Sendable {
  /// The absolute path without a trailing slash.
  package let path: String

  /// - Throws: if the folder cannot be created.
  package init() throws {
    path = NSTemporaryDirectory() + "moongate-" + UUID().uuidString
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of a file in the folder.
  package func path(_ name: String) -> String { path + "/" + name }

  /// Sets the permissions of a file, like `chmod`.
  package func setMode(_ mode: Int, of name: String) throws {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path(name))
  }

  /// Writes a file and creates its parent folders. A new file can only be accessed by its owner, as required for files
  /// with secrets.
  package func write(_ text: String, to name: String) throws {
    let file = URL(fileURLWithPath: path(name))
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    let isNew = !FileManager.default.fileExists(atPath: file.path)
    try Data(text.utf8).write(to: file)
    if isNew { try setMode(0o600, of: name) }
  }
}
