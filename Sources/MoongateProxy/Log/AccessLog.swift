import Foundation
import Synchronization

/// Writes the access log: takes whole lines from event loops and writes them on a thread of its own.
///
/// An event loop collects its lines in memory that only it touches and hands them over ten times a second, so no
/// request waits for a lock, a disk or a pipe. Where the target does not keep up, lines are dropped and counted.
package final class AccessLog: Sendable {
  /// Where the lines go.
  package enum Target: Sendable, Equatable {
    case standardOutput
    /// Made where it is missing, readable by the gateway's user only; added to where it is there.
    case file(String)

    /// What `MOONGATE_ACCESS_LOG` says: nothing or `off`, `stdout`, or a file.
    package init?(_ text: String?) {
      switch text {
      case nil, "", "off": return nil
      case "stdout", "-": self = .standardOutput
      case let path?: self = .file(path)
      }
    }
  }

  /// A target that cannot be opened: a sentence.
  package struct Problem: Error, CustomStringConvertible {
    package let description: String
  }

  private struct State {
    var waiting: [[UInt8]] = []
    var bytes = 0
    var lines = 0
    var dropped = 0
    var reopens = false
    var ended = false
    var hasEnded = false
  }

  /// In bytes: some 30,000 lines.
  private static let mostWaiting = 8 * 1024 * 1024

  private let target: Target
  private let state = Mutex(State())
  private let work = DispatchSemaphore(value: 0)

  /// Opens the target and starts the thread.
  package init(_ target: Target) throws(Problem) {
    self.target = target
    let descriptor = try Self.open(target)
    let thread = Thread { [self] in run(descriptor) }
    thread.name = "access log"
    thread.start()
  }

  /// Lines since the start: those taken, and those for which there was no room.
  package var counts: (taken: Int, dropped: Int) { state.withLock { ($0.lines, $0.dropped) } }

  /// Opens the file anew: whoever rotates logs has moved it away.
  package func reopen() {
    state.withLock { $0.reopens = true }
    work.signal()
  }

  /// Takes whole lines. Never waits.
  func take(_ bytes: [UInt8], lines: Int) {
    let isTaken = state.withLock { state in
      guard !state.ended, state.bytes + bytes.count <= Self.mostWaiting else {
        state.dropped += lines
        return false
      }
      state.waiting.append(bytes)
      state.bytes += bytes.count
      state.lines += lines
      return true
    }
    if isTaken { work.signal() }
  }

  /// Writes what waits, and ends. Waits a second at most.
  package func end() {
    state.withLock { $0.ended = true }
    work.signal()
    for _ in 0..<100 where !state.withLock({ $0.hasEnded }) { usleep(10_000) }
  }

  private func run(_ first: Int32) {
    var descriptor = first
    while true {
      work.wait()
      let (batch, reopens, ended) = state.withLock { state in
        defer {
          state.waiting = []
          state.reopens = false
        }
        return (state.waiting, state.reopens, state.ended)
      }
      if reopens, let fresh = try? Self.open(target) {
        if descriptor != STDOUT_FILENO { close(descriptor) }
        descriptor = fresh
      }
      for bytes in batch {
        Self.write(bytes, to: descriptor)
        state.withLock { $0.bytes -= bytes.count }
      }
      if ended {
        state.withLock { $0.hasEnded = true }
        return
      }
    }
  }

  private static func open(_ target: Target) throws(Problem) -> Int32 {
    guard case .file(let path) = target else { return STDOUT_FILENO }
    let descriptor = Foundation.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw Problem(
        description:
          "The access log \(path), named by MOONGATE_ACCESS_LOG, cannot be opened: \(String(cString: strerror(errno)))."
      )
    }
    return descriptor
  }

  private static func write(_ bytes: [UInt8], to descriptor: Int32) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      if written < 0, errno == EINTR { continue }
      // A log that cannot be written stops nothing.
      guard written > 0 else { return }
      rest = rest.dropFirst(written)
    }
  }
}
