import Foundation

/// The system user that the Debian package creates.
enum ServiceUser {
  static let name = "moongate"

  /// Changes the owner of files that root has written to the service user, which has to read them.
  /// - Returns: the user's name; nil if the user does not exist or the process does not run as root.
  @discardableResult static func giveSecrets(_ paths: [String]) -> String? {
    guard geteuid() == 0, let entry = getpwnam(name) else { return nil }
    for path in paths { lchown(path, entry.pointee.pw_uid, entry.pointee.pw_gid) }
    return name
  }
}
