import CLinux
import Foundation

/// Checks whether users other than the owner can access a file.
package enum FilePermissions {
  private static let useBits: UInt32 = 0o6
  private static let maxBytes = 4_096

  /// Whether the group or others may read or write an open file.
  ///
  /// If the file has an access control list, the group bits of the mode are only its mask. systemd provides credentials
  /// in this way (`r--r-----`, readable only by the user of the service).
  /// - Parameter status: the status of the open file. A path could be replaced between the check and the read.
  package static func isShared(_ status: stat, _ descriptor: Int32) -> Bool {
    guard status.st_mode & 0o066 != 0 else { return false }
    var bytes = [UInt8](repeating: 0, count: maxBytes)
    let length = clinux_access_list(descriptor, &bytes, maxBytes)
    guard length > 0 else { return true }
    return isShared(Array(bytes[..<length]))
  }

  /// Whether others may read or write the file at the path; false if it does not exist.
  static func isOpenToOthers(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & 0o006 != 0
  }

  /// Parses an access control list (acl(5), in the kernel's format: a version, then entries of tag, permissions and
  /// id).
  /// - Returns: also true for a list that cannot be parsed.
  static func isShared(_ list: [UInt8], user: UInt32 = geteuid()) -> Bool {
    let number = { (start: Int, count: Int) in
      (0..<count).reduce(UInt32(0)) { $0 | UInt32(list[start + $1]) << UInt32(8 * $1) }
    }
    guard list.count >= 4, list.count % 8 == 4, number(0, 4) == 2 else { return true }
    let entries = stride(from: 4, to: list.count, by: 8).map {
      (tag: number($0, 2), permissions: number($0 + 2, 2), id: number($0 + 4, 4))
    }
    let mask = entries.first { $0.tag == 0x10 }?.permissions ?? useBits
    return entries.contains { entry in
      switch entry.tag {
      // The owner, and the mask.
      case 0x01, 0x10: false
      // A named user. The gateway's own user and root are allowed.
      case 0x02: entry.permissions & mask & useBits != 0 && entry.id != user && entry.id != 0
      // The owning group and named groups.
      case 0x04, 0x08: entry.permissions & mask & useBits != 0
      default: entry.permissions & useBits != 0
      }
    }
  }
}
