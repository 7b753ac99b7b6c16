// Import Glibc explicitly: the compiler attributes `struct stat` to the first of these modules that it loads.
import CDispatch
import CoreFoundation
import Foundation
import Glibc
import MoongateCore
import MoongateProgram

/// Writes a file with a secret that gateways read.
enum SecretFile {
  /// Replaces the file, or creates it with its folder. Only its owner can read it: the owner of the old file, or
  /// `owner(inFolderOf:serviceUser:)`, because the gateway may run as another user than an operator.
  ///
  /// The new file is written beside the old one and renamed over it, so a crash leaves the old secret.
  /// - Returns: whether there was a file.
  @discardableResult static func write(_ text: String, to path: String) throws(StartProblem) -> Bool {
    // If the path is a symbolic link, replace its target.
    let real = realpath(path, nil)
    defer { free(real) }
    let target = real.map { String(cString: $0) } ?? path
    let folder = try open(folder: target.parentFolder)
    // The lock is held until the descriptor is closed.
    defer { close(folder) }
    guard flock(folder, LOCK_EX | LOCK_NB) == 0 else {
      throw StartProblem("Another command is changing \(path). Try again later.", status: .couldNotRun)
    }
    var owner = stat()
    let isReplaced = stat(target, &owner) == 0
    if !isReplaced {
      guard fstat(folder, &owner) == 0 else { throw PrivateFile.failed(path) }
      let new = Self.owner(inFolderOf: FileOwner(user: owner.st_uid, group: owner.st_gid))
      owner.st_uid = new.user
      owner.st_gid = new.group
    }
    guard canKeep(owner.st_uid, as: geteuid()) else {
      throw StartProblem(
        "\(path) belongs to another user, who could not read a file of yours. Run the command as that user or as root.",
        status: .couldNotRun)
    }
    if geteuid() != 0 { owner.st_gid = getegid() }
    try PrivateFile.replace(target, with: Array(text.utf8), owner: owner, mode: 0o600, name: path)
    fsync(folder)
    return isReplaced
  }

  /// The owner of a new file or folder: that of the folder in which it is made. In a folder of root it is the service
  /// user, if there is one: the package's configuration is root's, and the gateway could not read a secret of root.
  static func owner(inFolderOf folder: FileOwner, serviceUser: FileOwner? = ServiceUser.owner) -> FileOwner {
    folder.user == 0 ? serviceUser ?? folder : folder
  }

  /// Whether a process of the user can write a file that the owner can read.
  ///
  /// Attack on ourselves: an operator in the folder's group replaces a secret by a file that only the operator can
  /// read, and the gateway, which runs as another user, can no longer start.
  static func canKeep(_ owner: uid_t, as user: uid_t) -> Bool { user == 0 || user == owner }

  /// Opens the folder, and makes it if only it is missing.
  private static func open(folder path: String) throws(StartProblem) -> Int32 {
    let name = path.isEmpty ? "." : path
    if mkdir(name, 0o700) == 0, geteuid() == 0 {
      var above = stat()
      if stat(name.parentFolder.isEmpty ? "." : name.parentFolder, &above) == 0 {
        let new = owner(inFolderOf: FileOwner(user: above.st_uid, group: above.st_gid))
        chown(name, new.user, new.group)
      }
    }
    let folder = Glibc.open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else {
      throw StartProblem("The folder \(name) cannot be opened: \(MasterKey.reason()).", status: .couldNotRun)
    }
    return folder
  }
}
