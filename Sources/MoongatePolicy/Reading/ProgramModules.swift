import Foundation

/// The files that a script may import: those of its own ending, in its folder and the folders below. An operator who
/// saves one of them expects that it counts.
///
/// Bounded, since a folder may hold anything: dot files and what package managers put there are not looked at, nor is
/// what lies deep. What a program writes itself is no module (unless it writes programs), so it does not start itself
/// anew by working.
struct ProgramModules: Sendable, Equatable {
  /// Files of one program, and folders that they are looked for in. Each is looked at twice a second.
  static let most = 256
  /// Folders below the script's own.
  private static let deepest = 3
  /// What holds other people's modules: they change with an installation, and there are thousands.
  private static let foreign: Set<String> = ["__pycache__", "node_modules", "venv", "site-packages", "vendor"]

  /// Absolute, in the order of their names, without the script.
  let files: [String]
  /// Where they were looked for, absolute, but for the configuration's own folder. A module that is saved after what
  /// imports it is in none of the files: what tells of it is its folder.
  let folders: [String]
  /// Whether there are more.
  let isCut: Bool

  /// - Parameters:
  ///   - script: absolute. One without an ending, such as a program of the system, imports nothing that could be told
  ///     by its name.
  ///   - configuration: the configuration's folder, absolute. A script that lies in it has its modules there, and none
  ///     in the folders below, which are other programs' and the gateway's.
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
    // Somebody else's modules, wherever their folder is called what it likes.
    if names.contains("pyvenv.cfg") { return }
    seen.append(folder)
    for name in names.sorted() where !name.hasPrefix(".") && !foreign.contains(name) && found.count <= most + 1 {
      let path = "\(folder)/\(name)"
      var status = stat()
      // A link to a file is followed, one to a folder is not: it may lead back.
      guard lstat(path, &status) == 0 else { continue }
      if status.st_mode & S_IFMT == S_IFDIR {
        if depth < deepest { look(in: path, for: ending, depth: depth + 1, &found, &seen) }
      } else if name.hasSuffix(ending), stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
        found.append(path)
      }
    }
  }
}
