// `struct stat` is the C library's, but counts as a member of whichever of these modules the compiler has read first.
import CDispatch
import CoreFoundation
import Foundation
import Glibc
import Logging
import MoongateCore
import ServiceLifecycle

/// Takes the master keys anew when their file changes: `moongate keys` writes it, or a copy comes from another
/// gateway's machine.
///
/// What is no ring of this store is told and not taken: the gateway goes on with the keys that it has, and would not
/// start with those.
struct KeyReload: Service {
  private static let interval: Duration = .seconds(1)

  private let path: String?
  private let keys: KeyRing
  private let logger: Logger

  /// - Parameter keys: the ring that all parts of the gateway hold.
  init(_ location: KeyLocation, keys: KeyRing, logger: Logger) {
    // A variable of the environment does not change while a process lives.
    path = if case .file(let path) = location { path } else { nil }
    self.keys = keys
    self.logger = logger
  }

  func run() async throws {
    await cancelWhenGracefulShutdown {
      // It may have changed since it was read at the start: the first look takes it again.
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

  /// Reads the file, and takes what it holds where that is this store's.
  func take(_ path: String) {
    let before = keys.names
    do {
      guard let bytes = try MasterKey.read(path) else {
        throw StartProblem("The key file \(path) is gone: put its copy in its place.")
      }
      let masters = try MasterKey.masters(bytes, from: "The key file \(path)")
      guard keys.replace(by: masters) else {
        throw StartProblem(
          "The key file \(path) begins with another key, \(masters.oldest.name): by the oldest one a store is known, and that is taken at a start only."
        )
      }
      if keys.names != before {
        logger.notice("the master keys are others now: \(masters.members.map(\.description).joined(separator: ", "))")
      }
    } catch {
      logger.error(
        "\((error as? StartProblem)?.sentence ?? "\(error)") This gateway goes on with the keys that it has.")
    }
  }

  /// What tells one state of a file from the next.
  private struct FileState: Equatable {
    private var file: UInt64 = 0
    private var size: Int64 = -1
    /// When anything of it changed last, its mode included: one that others could read is taken once they no longer
    /// can.
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
