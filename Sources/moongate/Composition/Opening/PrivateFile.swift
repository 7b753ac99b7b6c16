// Import Glibc explicitly: the compiler attributes `struct stat` to the first of these modules that it loads.
import CDispatch
import CoreFoundation
import Foundation
import Glibc
import MoongateCore
import MoongateProgram

/// Replaces files whose contents others must not read.
enum PrivateFile {
  /// Writes the bytes beside the file and renames them over it, so a crash at any point leaves the old ones in place.
  /// The caller holds the lock of the folder.
  /// - Parameters:
  ///   - owner: whose file it becomes. Only root can give a file to another user.
  ///   - mode: its permissions.
  ///   - name: what errors call the file.
  static func replace(_ path: String, with bytes: [UInt8], owner: stat, mode: mode_t, name: String)
    throws(StartProblem)
  {
    let draft = path + ".new"
    // Remove the draft of a killed process.
    unlink(draft)
    let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { throw failed(name) }
    var isDone = false
    defer { if !isDone { unlink(draft) } }
    let isWritten =
      DescriptorIO.writeAll(bytes, to: file) && fchown(file, owner.st_uid, owner.st_gid) == 0
      && fchmod(file, mode) == 0 && fsync(file) == 0
    let problem = failed(name)
    close(file)
    guard isWritten else { throw problem }
    guard rename(draft, path) == 0 else { throw failed(name) }
    isDone = true
  }

  static func failed(_ name: String) -> StartProblem {
    StartProblem("\(name) cannot be replaced: \(MasterKey.reason()). It has not changed.", status: .couldNotRun)
  }
}
