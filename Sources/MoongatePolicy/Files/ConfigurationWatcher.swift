import Foundation
import MoongateCore

/// The metadata of a folder's files, by which a change is detected.
struct FolderSignature: Sendable, Equatable {
  private struct Entry: Sendable, Equatable {
    let name: String
    let size: Int64
    let inode: UInt64
    let modified: Int64
    let modifiedNanoseconds: Int64
    let changed: Int64
    let changedNanoseconds: Int64
  }

  private let entries: [Entry]

  /// - Parameter also: absolute paths of other files that the folder names, such as programs and secrets.
  init(folder: String, also: [String] = []) {
    let named =
      (ConfigurationFiles.names(in: folder) + ConfigurationFiles.pageNames(in: folder)
      + ConfigurationFiles.errorPageNames(in: folder)).map { ($0, folder + "/" + $0) }
    entries = (named + Set(also).sorted().map { ($0, $0) }).map { name, path in
      var status = stat()
      // Follows links: a mounted configuration is often switched by replacing one link.
      guard stat(path, &status) == 0 else {
        return Entry(
          name: name, size: -1, inode: 0, modified: 0, modifiedNanoseconds: 0, changed: 0, changedNanoseconds: 0)
      }
      return Entry(
        name: name, size: Int64(status.st_size), inode: UInt64(status.st_ino), modified: Int64(status.st_mtim.tv_sec),
        modifiedNanoseconds: Int64(status.st_mtim.tv_nsec), changed: Int64(status.st_ctim.tv_sec),
        changedNanoseconds: Int64(status.st_ctim.tv_nsec))
    }
  }
}

/// Decides when a changing folder is ready to be read.
///
/// An editor that is still writing leaves partial files, so the folder must look the same twice. After ten
/// observations, it is read in any case, so that a file that is written continuously does not hide other changes.
struct ChangeDetector<Signature: Equatable & Sendable>: Sendable {
  enum Step: Sendable, Equatable {
    case quiet
    /// Something changed: poll again soon.
    case settling
    /// Read the folder now.
    case ready
  }

  private var loaded: Signature
  private var seen: Signature
  private var looks = 0

  init(_ signature: Signature) {
    loaded = signature
    seen = signature
  }

  /// Processes the current signature of the folder.
  mutating func observe(_ signature: Signature) -> Step {
    if signature == loaded, looks == 0 { return .quiet }
    looks += 1
    let isSettled = signature == seen && looks > 1
    seen = signature
    guard isSettled || looks >= 10 else { return .settling }
    looks = 0
    // A change that was reverted is read as well: the files may have been replaced by others with the same metadata.
    loaded = signature
    return .ready
  }
}

/// Detects changes of a folder's Lua files, and of files that they name, by polling twice a second. Polling works on
/// every file system, and for links, renames and mounts.
package struct ConfigurationWatcher: Sendable {
  private let folder: String
  private let interval: Duration
  private let settling: Duration
  private let first: FolderSignature
  private let also: @Sendable () -> [String]

  /// Create it before the folder is loaded, so that no change in between is missed.
  /// - Parameters:
  /// - interval: the polling interval.
  /// - settling: the polling interval while files change.
  /// - also: returns absolute paths of other files that the folder currently names, such as programs and secrets.
  package init(
    folder: String, interval: Duration = .milliseconds(500), settling: Duration = .milliseconds(100),
    also: @escaping @Sendable () -> [String] = { [] }
  ) {
    self.also = also
    self.folder = folder
    self.interval = interval
    self.settling = settling
    first = FolderSignature(folder: folder)
  }

  /// Calls back after each change, one call at a time, until the task is cancelled.
  /// - Parameter pause: sleeps; tests replace it.
  package func run(
    pause: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
    onChange: @Sendable () async -> Void
  ) async {
    var detector = ChangeDetector(first)
    var step = ChangeDetector<FolderSignature>.Step.quiet
    while !Task.isCancelled {
      do { try await pause(step == .settling ? settling : interval) } catch { return }
      step = detector.observe(FolderSignature(folder: folder, also: also()))
      if step == .ready { await onChange() }
    }
  }
}
