import CLinux
import Foundation

/// Who may use a file besides its owner.
package enum FilePermissions {
  private static let useBits: UInt32 = 0o6
  private static let mostBytes = 4_096

  /// Whether its group or others may read or write an open file.
  ///
  /// Where the file has an access list, the mode's group bits only say what the list allows at most: systemd hands out
  /// credentials that way (`r--r-----`, readable by the service's own user alone).
  /// - Parameter status: of the open file: between a look at the path and the reading it could be exchanged.
  package static func isShared(_ status: stat, _ descriptor: Int32) -> Bool {
    guard status.st_mode & 0o066 != 0 else { return false }
    var bytes = [UInt8](repeating: 0, count: mostBytes)
    let length = clinux_access_list(descriptor, &bytes, mostBytes)
    guard length > 0 else { return true }
    return isShared(Array(bytes[..<length]))
  }

  /// Whether others may read or write the file at the path; false where there is none.
  static func isOpenToOthers(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & 0o006 != 0
  }

  /// Reads an access list (acl(5), as the kernel stores it: a version, then entries of tag, permissions and id).
  /// - Returns: true for one that cannot be read, too.
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
      // The owner, and what the others have at most.
      case 0x01, 0x10: false
      // A user by name: the gateway's own, and root, who may read everything.
      case 0x02: entry.permissions & mask & useBits != 0 && entry.id != user && entry.id != 0
      // The file's group, and groups by name.
      case 0x04, 0x08: entry.permissions & mask & useBits != 0
      default: entry.permissions & useBits != 0
      }
    }
  }
}
