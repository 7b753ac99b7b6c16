import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Whether the gateway may take its configuration from a folder that somebody names over the admin listener.
///
/// Attack: the admin listener asks nobody on this machine who they are where gateway.lua names no token, and a
/// configuration is as good as a program: it names programs that the gateway starts, files that it reads and upstreams
/// that it sends people to. Whoever may talk to the listener would make any folder theirs, such as one in /tmp, and be
/// the gateway. So a candidate must be written by those who write the configuration anyway: root, the gateway's own
/// user, and the owner of the folder that is served; and nobody else may change it, nor swap it for another on the way
/// to it.
enum CandidateFolder {
  struct Problem: Error, Equatable {
    let place: String
    let sentence: String
  }

  private static let folders = ["policies", "flows", "tests", "pages"]
  private static let mostEntries = 2_000

  /// The real path of a folder that the gateway may trust.
  /// - Parameter served: the folder that is served.
  /// - Throws: why not.
  static func trusted(_ path: String, as served: String) throws(Problem) -> String {
    let shown = String(
      path.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7f }.prefix(500).map(Character.init))
    guard path.hasPrefix("/") else {
      throw Problem(place: shown, sentence: "name the folder by its whole path, from / on")
    }
    guard path.utf8.count < Int(PATH_MAX), !path.utf8.contains(0), let real = real(path) else {
      throw Problem(place: shown, sentence: "there is no such folder, or the gateway's user may not look into it")
    }
    var own = stat()
    let owner = stat(served, &own) == 0 ? own.st_uid : 0
    let writers: Set<uid_t> = [0, geteuid(), owner]
    try demandAncestors(real, writers)
    try demandEntries(real, writers)
    for folder in folders where isFolder("\(real)/\(folder)") { try demandEntries("\(real)/\(folder)", writers) }
    return real
  }

  /// Without links and dots; nil where there is nothing of the name.
  static func real(_ path: String) -> String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
  }

  /// Nobody else may put another folder in its place.
  private static func demandAncestors(_ path: String, _ writers: Set<uid_t>) throws(Problem) {
    var at = ""
    let parts = path.split(separator: "/")
    for (index, part) in ([""] + parts.map(String.init)).enumerated() {
      at = index == 0 ? "/" : at == "/" ? "/" + part : at + "/" + part
      var status = stat()
      guard lstat(at, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
        throw Problem(place: at, sentence: "is no folder")
      }
      // In a folder such as /tmp others may add names, but not take away ours.
      let isSticky = index < parts.count && status.st_mode & S_ISVTX != 0
      try demand(status, at, writers, mayBeShared: isSticky)
    }
  }

  private static func demandEntries(_ folder: String, _ writers: Set<uid_t>) throws(Problem) {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    guard names.count <= mostEntries else {
      throw Problem(place: folder, sentence: "holds more than \(mostEntries) files")
    }
    for name in names.sorted() where !name.hasPrefix(".") {
      let path = "\(folder)/\(name)"
      var status = stat()
      guard lstat(path, &status) == 0 else { continue }
      // A link's target may be anybody's.
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
        sentence: "its group or others may change it, so a candidate there may be anybody's. Run: chmod go-w \(path)")
    }
  }

  private static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }
}
