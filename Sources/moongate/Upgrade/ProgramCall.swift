import Foundation

/// How this process was started: what an upgrade starts again. The file may be another one by then.
struct ProgramCall: Sendable {
  /// The program's own path, as the process was called: a package or a link may put another file there.
  let path: String
  let arguments: [String]

  /// Found at the start, before anything replaces the file.
  static let own = ProgramCall(arguments: CommandLine.arguments, folder: FileManager.default.currentDirectoryPath)

  /// - Parameter folder: the one that the process was started in.
  init(
    arguments: [String], folder: String, searchPath: String = ProcessInfo.processInfo.environment["PATH"] ?? "",
    image: String = "/proc/self/exe"
  ) {
    self.arguments = arguments
    let name = arguments.first ?? ""
    let places =
      name.contains("/")
      ? [name.hasPrefix("/") ? name : "\(folder)/\(name)"]
      : searchPath.split(separator: ":").filter { $0.hasPrefix("/") }.map { "\($0)/\(name)" }
    // Attack: a first argument that names another program than the one that runs. It is taken for a path only if the
    // running file lies there.
    path = places.first { Self.file($0) == Self.file(image) && Self.file($0) != nil } ?? Self.target(image) ?? name
  }

  private static func target(_ link: String) -> String? {
    try? FileManager.default.destinationOfSymbolicLink(atPath: link)
  }

  /// What tells one file from another.
  private static func file(_ path: String) -> [UInt64]? {
    var found = stat()
    return stat(path, &found) == 0 ? [UInt64(found.st_dev), UInt64(found.st_ino)] : nil
  }
}
