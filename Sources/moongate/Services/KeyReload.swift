// Import Glibc explicitly: the compiler attributes `struct stat` to the first of these modules that it loads.
import CDispatch
import CoreFoundation
import Foundation
import Glibc
import Logging
import MoongateCore
import MoongateProgram
import ServiceLifecycle

/// Reloads the master keys when their file changes, through `moongate keys` or a copy from another machine.
///
/// A file that does not contain the keys of this store is logged and ignored. The gateway continues with its current
/// keys, but would not start with that file.
struct KeyReload: Service {
  private static let interval: Duration = .seconds(1)

  private let path: String?
  private let keys: KeyRing
  private let logger: Logger

  /// - Parameter keys: the key ring shared by all parts of the gateway.
  init(_ location: KeyLocation, keys: KeyRing, logger: Logger) {
    // An environment variable does not change during the life of the process.
    path = if case .file(let path) = location { path } else { nil }
    self.keys = keys
    self.logger = logger
  }

  func run() async throws {
    await cancelWhenGracefulShutdown {
      // The file may have changed since the start, so the first check always reads it.
      var known: FileState?
      while !Task.isCancelled {
        if let path {
          let look = FileState(path)
          if look != known { take(path) }
          known = look
        }
        do { try await Task.sleep(for: Self.interval) } catch { return }
      }
    }
  }

  /// Reads the file and uses its keys if they belong to this store.
  func take(_ path: String) {
    let before = keys.names
    do {
      guard let bytes = try MasterKey.read(path) else {
        throw StartProblem("The key file \(path) is missing. Restore it from your copy.")
      }
      let masters = try MasterKey.masters(bytes, from: "The key file \(path)")
      guard keys.replace(by: masters) else {
        throw StartProblem(
          "The key file \(path) begins with another key, \(masters.oldest.name). The oldest key identifies the store and can change only at a start."
        )
      }
      if keys.names != before {
        logger.notice("master keys reloaded: \(masters.members.map(\.description).joined(separator: ", "))")
      }
    } catch {
      logger.error(
        "\((error as? StartProblem)?.sentence ?? "\(error)") This gateway keeps its current keys.")
    }
  }

  /// The properties that identify a state of the file.
  private struct FileState: Equatable {
    private var file: UInt64 = 0
    private var size: Int64 = -1
    /// The time of the last change, including the mode: the keys are loaded once an exposed file becomes private.
    private var seconds = 0
    private var nanoseconds = 0

    init(_ path: String) {
      var status = stat()
      guard stat(path, &status) == 0 else { return }
      file = UInt64(status.st_ino)
      size = Int64(status.st_size)
      seconds = status.st_ctim.tv_sec
      nanoseconds = status.st_ctim.tv_nsec
    }
  }
}
