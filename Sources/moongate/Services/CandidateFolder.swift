// Import Glibc explicitly: the compiler attributes `struct stat` to the first of these modules that it loads.
import CDispatch
import CoreFoundation
import Foundation
import Glibc

/// Checks whether the gateway may load a configuration from a folder named over the admin listener.
///
/// Attack: without an admin token, every local user can use the admin listener, and a configuration is as powerful as a
/// program: it starts programs, reads files and selects upstreams. An attacker could write a folder, for example in
/// /tmp, and take over the gateway. Therefore only root, the gateway's user and the owner of the active folder may be
/// able to change a candidate or any folder on the path to it.
enum CandidateFolder {
  struct Problem: Error, Equatable {
    let place: String
    let sentence: String
  }

  private static let folders = ["policies", "flows", "tests", "shared", "pages"]
  private static let maxEntries = 2_000

  /// The canonical path of a folder that the gateway may trust.
  /// - Parameter served: the active folder.
  /// - Throws: the reason to refuse it.
  static func trusted(_ path: String, as served: String) throws(Problem) -> String {
    let shown = String(
      path.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7f }.prefix(500).map(Character.init))
    guard path.hasPrefix("/") else {
      throw Problem(place: shown, sentence: "use the absolute path of the folder")
    }
    guard path.utf8.count < Int(PATH_MAX), !path.utf8.contains(0), let canonical = canonicalPath(path) else {
      throw Problem(place: shown, sentence: "the folder does not exist, or the gateway's user cannot read it")
    }
    var own = stat()
    let owner = stat(served, &own) == 0 ? own.st_uid : 0
    let writers: Set<uid_t> = [0, geteuid(), owner]
    try demandAncestors(canonical, writers)
    try demandEntries(canonical, writers)
    for folder in folders where isFolder("\(canonical)/\(folder)") {
      try demandEntries("\(canonical)/\(folder)", writers)
    }
    return canonical
  }

  /// The path without symbolic links and dots; nil if it does not exist.
  static func canonicalPath(_ path: String) -> String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
  }

  /// Checks that no other user can replace a folder on the path.
  private static func demandAncestors(_ path: String, _ writers: Set<uid_t>) throws(Problem) {
    var at = ""
    let parts = path.split(separator: "/")
    for (index, part) in ([""] + parts.map(String.init)).enumerated() {
      at = index == 0 ? "/" : at == "/" ? "/" + part : at + "/" + part
      var status = stat()
      guard lstat(at, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
        throw Problem(place: at, sentence: "is not a folder")
      }
      // In a sticky folder like /tmp, other users can add names but not remove ours.
      let isSticky = index < parts.count && status.st_mode & S_ISVTX != 0
      try demand(status, at, writers, mayBeShared: isSticky)
    }
  }

  private static func demandEntries(_ folder: String, _ writers: Set<uid_t>) throws(Problem) {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    guard names.count <= maxEntries else {
      throw Problem(place: folder, sentence: "contains more than \(maxEntries) files")
    }
    for name in names.sorted() where !name.hasPrefix(".") {
      let path = "\(folder)/\(name)"
      var status = stat()
      guard lstat(path, &status) == 0 else { continue }
      // Any user could own the target of a link.
      guard status.st_mode & S_IFMT != S_IFLNK else {
        throw Problem(place: path, sentence: "is a symbolic link: a candidate's files must be its own")
      }
      try demand(status, path, writers)
    }
  }

  private static func demand(_ status: stat, _ path: String, _ writers: Set<uid_t>, mayBeShared: Bool = false)
    throws(Problem)
  {
    guard writers.contains(status.st_uid) else {
      throw Problem(
        place: path,
        sentence:
          "belongs to another user (\(status.st_uid)): a candidate must be written by root, the gateway's user or the owner of the folder that is served"
      )
    }
    guard mayBeShared || status.st_mode & 0o022 == 0 else {
      throw Problem(
        place: path,
        sentence: "its group or others can change it, so the candidate cannot be trusted. Run: chmod go-w \(path)")
    }
  }

  private static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }
}
