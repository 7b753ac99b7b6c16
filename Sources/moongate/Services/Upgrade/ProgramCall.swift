// Import Glibc explicitly: the compiler attributes `struct stat` to the first of these modules that it loads.
import CDispatch
import CoreFoundation
import Foundation
import Glibc

/// The command line of this process, for an upgrade to start it again. The file may have been replaced since.
struct ProgramCall: Sendable {
  /// The path of the program, as it was started: a package or a link may put another file there.
  let path: String
  let arguments: [String]

  /// Determined at the start, before the file can be replaced.
  static let own = ProgramCall(arguments: CommandLine.arguments, folder: FileManager.default.currentDirectoryPath)

  /// - Parameter folder: the initial working folder.
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
    // Attack: the first argument names another program than the running one. It is used as a path only if it refers to
    // the running file.
    path = places.first { Self.file($0) == Self.file(image) && Self.file($0) != nil } ?? Self.target(image) ?? name
  }

  private static func target(_ link: String) -> String? {
    try? FileManager.default.destinationOfSymbolicLink(atPath: link)
  }

  /// The identity of a file.
  private static func file(_ path: String) -> [UInt64]? {
    var found = stat()
    return stat(path, &found) == 0 ? [UInt64(found.st_dev), UInt64(found.st_ino)] : nil
  }
}
