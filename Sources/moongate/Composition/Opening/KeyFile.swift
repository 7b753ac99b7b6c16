// Import Glibc explicitly: the compiler attributes `struct stat` to the first of these modules that it loads.
import CDispatch
import CoreFoundation
import Foundation
import Glibc
import MoongateCore
import MoongateProgram

/// Atomic changes of a key file by one process at a time.
enum KeyFile {
  /// Replaces the keys in the file with the result of the body.
  ///
  /// The new file is written beside the old one, synced, and renamed over it. A crash at any point leaves the old keys
  /// in place, and the file always exists. Mode and owner are kept, because the gateway may run as another user.
  /// - Returns: the new keys.
  /// - Throws: an error if the file cannot be read or replaced; any error of the body.
  static func change(_ path: String, _ body: (MasterKeys) async throws -> MasterKeys) async throws -> MasterKeys {
    // If the path is a symbolic link, replace its target.
    guard let real = realpath(path, nil) else {
      throw StartProblem(
        errno == ENOENT
          ? "There is no key file \(path). A gateway creates it at its first start."
          : "The key file \(path) cannot be read: \(MasterKey.reason()).",
        status: .couldNotRun)
    }
    defer { free(real) }
    let target = String(cString: real)
    let folder = open(target.parentFolder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else {
      throw StartProblem(
        "The folder of the key file \(path) cannot be read: \(MasterKey.reason()).", status: .couldNotRun)
    }
    // The lock is held until the descriptor is closed; the kernel also closes it for a killed process.
    defer { close(folder) }
    guard flock(folder, LOCK_EX | LOCK_NB) == 0 else {
      throw StartProblem(
        "Another `moongate keys` is changing \(path). Try again later.", status: .couldNotRun)
    }
    guard let bytes = try MasterKey.read(target) else {
      throw StartProblem("There is no key file \(path). A gateway creates it at its first start.", status: .couldNotRun)
    }
    let changed = try await body(try MasterKey.masters(bytes, from: "The key file \(path)"))
    let name = "The key file \(target)"
    var before = stat()
    guard stat(target, &before) == 0 else { throw PrivateFile.failed(name) }
    try PrivateFile.replace(
      target, with: Array(changed.text.utf8), owner: before, mode: before.st_mode & 0o777, name: name)
    fsync(folder)
    return changed
  }
}
