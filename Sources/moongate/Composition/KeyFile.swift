// `struct stat` is the C library's, but counts as a member of whichever of these modules the compiler has read first.
import CDispatch
import CoreFoundation
import Foundation
import Glibc
import MoongateCore

/// Changes a key file: whole or not at all, one process at a time.
enum KeyFile {
  /// Reads the keys, and puts what the body makes of them in their place.
  ///
  /// Written beside the file, synced, and renamed over it: whoever dies at any point in between leaves the keys as they
  /// were, and at no moment is there no file. Mode and owner stay: a gateway of another user must be able to read it
  /// afterwards.
  /// - Returns: what is there now.
  /// - Throws: a sentence; what the body throws.
  static func change(_ path: String, _ body: (MasterKeys) async throws -> MasterKeys) async throws -> MasterKeys {
    // A link stays one: what it leads to is replaced.
    guard let real = realpath(path, nil) else {
      throw StartProblem(
        errno == ENOENT
          ? "There is no key file \(path): a gateway that has run makes it."
          : "The key file \(path) cannot be read: \(MasterKey.reason()).",
        status: .couldNotRun)
    }
    defer { free(real) }
    let target = String(cString: real)
    let folder = open((target as NSString).deletingLastPathComponent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else {
      throw StartProblem(
        "The folder of the key file \(path) cannot be read: \(MasterKey.reason()).", status: .couldNotRun)
    }
    // Held until it is closed, by the kernel also of one that was killed.
    defer { close(folder) }
    guard flock(folder, LOCK_EX | LOCK_NB) == 0 else {
      throw StartProblem(
        "Another `moongate keys` is changing \(path). Try again when it has ended.", status: .couldNotRun)
    }
    guard let bytes = try MasterKey.read(target) else {
      throw StartProblem("There is no key file \(path): a gateway that has run makes it.", status: .couldNotRun)
    }
    let changed = try await body(try MasterKey.masters(bytes, from: "The key file \(path)"))
    try replace(target, with: Array(changed.text.utf8))
    fsync(folder)
    return changed
  }

  private static func replace(_ path: String, with bytes: [UInt8]) throws(StartProblem) {
    var before = stat()
    guard stat(path, &before) == 0 else { throw failed(path) }
    let draft = path + ".new"
    // One that a killed process left.
    unlink(draft)
    let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { throw failed(path) }
    var isDone = false
    defer { if !isDone { unlink(draft) } }
    let isWritten = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) } == bytes.count
    let isTheirs =
      isWritten && fchown(file, before.st_uid, before.st_gid) == 0 && fchmod(file, before.st_mode & 0o777) == 0
    let isKept = isTheirs && fsync(file) == 0
    let problem = failed(path)
    close(file)
    guard isKept else { throw problem }
    guard rename(draft, path) == 0 else { throw failed(path) }
    isDone = true
  }

  private static func failed(_ path: String) -> StartProblem {
    StartProblem("The key file \(path) cannot be replaced: \(MasterKey.reason()). It is as it was.")
  }
}
