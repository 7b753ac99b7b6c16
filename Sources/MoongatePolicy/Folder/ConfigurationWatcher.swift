import Foundation
import MoongateCore

/// How the Lua files of a folder look from outside: enough to see that one of them changed.
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

  /// - Parameter also: other files that the folder names, absolute, such as programs.
  init(folder: String, also: [String] = []) {
    let named = (ConfigurationFiles.names(in: folder) + ConfigurationFiles.pageNames(in: folder)).map {
      ($0, folder + "/" + $0)
    }
    entries = (named + Set(also).sorted().map { ($0, $0) }).map { name, path in
      var status = stat()
      // Where a link leads is what counts: a mounted configuration is switched by one link.
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

/// Decides when a folder that changes is ready to be read: once it looked the same twice, since an editor that is still
/// writing leaves half a file; but after a second in any case, so that a file that is written to without end hides no
/// change.
struct ChangeDetector<Signature: Equatable & Sendable>: Sendable {
  enum Step: Sendable, Equatable {
    case quiet
    /// Something changed: look again soon.
    case settling
    /// Read it now.
    case ready
  }

  private var loaded: Signature
  private var seen: Signature
  private var looks = 0

  init(_ signature: Signature) {
    loaded = signature
    seen = signature
  }

  /// Takes what the folder looks like now.
  mutating func observe(_ signature: Signature) -> Step {
    if signature == loaded, looks == 0 { return .quiet }
    looks += 1
    let isSettled = signature == seen && looks > 1
    seen = signature
    guard isSettled || looks >= 10 else { return .settling }
    looks = 0
    // What changed and changed back is read as well: the files may have been replaced by others of the same look.
    loaded = signature
    return .ready
  }
}

/// Notices a change of any Lua file of a folder, by looking at it twice a second: that works on every file system, and
/// for links, renames and mounts alike.
package struct ConfigurationWatcher: Sendable {
  private let folder: String
  private let interval: Duration
  private let settling: Duration
  private let first: FolderSignature
  private let also: @Sendable () -> [String]

  /// Made before the folder is loaded, so that a change between the two is seen.
  /// - Parameters:
  ///   - interval: between two looks.
  ///   - settling: between two looks while files change.
  ///   - also: other files that the folder names now, absolute, such as programs.
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
  /// - Parameter pause: waits; tests put their own here.
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
