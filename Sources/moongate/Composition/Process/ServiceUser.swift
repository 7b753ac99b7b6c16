// Import Glibc explicitly: the compiler attributes `struct stat` to the first of these modules that it loads.
import CDispatch
import CoreFoundation
import Foundation
import Glibc

/// The system user that the Debian package creates.
enum ServiceUser {
  static let name = "moongate"

  /// The user's file owner; nil if the user does not exist or the process does not run as root.
  static var owner: FileOwner? {
    guard geteuid() == 0, let entry = getpwnam(name) else { return nil }
    return FileOwner(user: entry.pointee.pw_uid, group: entry.pointee.pw_gid)
  }

  /// Changes the owner of files that root has written to the service user, which has to read them.
  /// - Returns: the user's name; nil if the user does not exist or the process does not run as root.
  @discardableResult static func giveSecrets(_ paths: [String]) -> String? {
    guard let owner else { return nil }
    for path in paths { lchown(path, owner.user, owner.group) }
    return name
  }

  /// Lets the service user read files and folders that root has written with a strict umask, and keeps.
  static func allowReading(_ paths: [String]) {
    guard let owner else { return }
    allowReading(paths, to: owner.group)
  }

  /// Gives files and folders of this process's user to a group with read access. Those that everybody can read stay as
  /// they are.
  static func allowReading(_ paths: [String], to group: gid_t) {
    for path in paths {
      // Attack: a link in the place of a file hands another file over.
      let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
      guard file >= 0 else { continue }
      defer { close(file) }
      var status = stat()
      guard fstat(file, &status) == 0, status.st_uid == geteuid() else { continue }
      let all: mode_t = status.st_mode & S_IFMT == S_IFDIR ? 0o5 : 0o4
      guard status.st_mode & all != all, fchown(file, uid_t.max, group) == 0 else { continue }
      // Attack: a group that may write could change the configuration. It only reads.
      fchmod(file, status.st_mode & 0o7707 | all << 3)
    }
  }
}

/// The user and group of a file.
struct FileOwner: Equatable {
  let user: uid_t
  let group: gid_t
}
