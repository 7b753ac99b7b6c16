import Foundation

/// The modules of a script: files with the same extension in its folder and the folders below. A change of any of them
/// restarts the program.
///
/// The search is bounded: it skips hidden files, package folders and deep folders. Files that the program writes
/// itself, such as data, have other extensions, so they do not restart it.
struct ProgramModules: Sendable, Equatable {
  /// The maximum number of files of one program, and of folders to search. Each is checked twice a second.
  static let most = 256
  /// The maximum depth of folders below the script's own.
  private static let deepest = 3
  /// Folders with third-party modules: they change with an installation and contain thousands of files.
  private static let foreign: Set<String> = ["__pycache__", "node_modules", "venv", "site-packages", "vendor"]

  /// Absolute paths in the order of their names, without the script.
  let files: [String]
  /// Absolute paths of the searched folders, except the configuration folder itself. A new module appears in no listed
  /// file, so its folder has to be watched too.
  let folders: [String]
  /// Whether the search hit its bound.
  let isCut: Bool

  /// - Parameters:
  /// - script: absolute path. A file without an extension, such as a system program, has no modules that can be
  ///   identified by name.
  /// - configuration: absolute path of the configuration folder. A script in it has modules only there: the folders
  ///   below belong to other programs and to the gateway.
  init(of script: String, configuration: String) {
    let file = URL(filePath: script)
    let ending = file.pathExtension
    guard !ending.isEmpty else {
      (files, folders, isCut) = ([], [], false)
      return
    }
    let folder = file.deletingLastPathComponent().path(percentEncoded: false)
    let clean = folder.count > 1 && folder.hasSuffix("/") ? String(folder.dropLast()) : folder
    var found: [String] = []
    var seen: [String] = []
    Self.look(in: clean, for: ".\(ending)", depth: clean == configuration ? Self.deepest : 0, &found, &seen)
    let modules = found.filter { $0 != script }
    files = Array(modules.prefix(Self.most))
    folders = seen.prefix(Self.most).filter { $0 != configuration }
    isCut = modules.count > Self.most || seen.count > Self.most
  }

  private static func look(
    in folder: String, for ending: String, depth: Int, _ found: inout [String], _ seen: inout [String]
  ) {
    guard found.count <= most + 1, seen.count <= most,
      let names = try? FileManager.default.contentsOfDirectory(atPath: folder)
    else { return }
    // A virtual environment with any name.
    if names.contains("pyvenv.cfg") { return }
    seen.append(folder)
    for name in names.sorted() where !name.hasPrefix(".") && !foreign.contains(name) && found.count <= most + 1 {
      let path = "\(folder)/\(name)"
      var status = stat()
      // Follows links to files, but not to folders, which may form a cycle.
      guard lstat(path, &status) == 0 else { continue }
      if status.st_mode & S_IFMT == S_IFDIR {
        if depth < deepest { look(in: path, for: ending, depth: depth + 1, &found, &seen) }
      } else if name.hasSuffix(ending), stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
        found.append(path)
      }
    }
  }
}
