import Foundation
import MoongateCore
import Synchronization

/// Writes the access log on a dedicated thread.
///
/// Each event loop collects lines in memory and hands them over ten times per second, so no request waits for a
/// lock, a disk or a pipe. If the target is too slow, lines are dropped and counted.
package final class AccessLog: Sendable {
  /// The destination of the log.
  package enum Target: Sendable, Equatable {
    case standardOutput
    /// A file. It is created if missing, readable only by the gateway's user; otherwise lines are appended.
    case file(String)

    /// Parses `MOONGATE_ACCESS_LOG`: empty or `off`, `stdout`, or a file.
    package init?(_ text: String?) {
      switch text {
      case nil, "", "off": return nil
      case "stdout", "-": self = .standardOutput
      case let path?: self = .file(path)
      }
    }
  }

  /// Why the target cannot be opened, as a sentence.
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

  /// The maximum number of waiting bytes, about 30,000 lines.
  private static let maxWaiting = 8 * 1024 * 1024

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

  /// The number of lines since the start: accepted, and dropped because the buffer was full.
  package var counts: (taken: Int, dropped: Int) { state.withLock { ($0.lines, $0.dropped) } }

  /// Reopens the file after log rotation.
  package func reopen() {
    state.withLock { $0.reopens = true }
    work.signal()
  }

  /// Accepts complete lines. Never blocks.
  func take(_ bytes: [UInt8], lines: Int) {
    let isTaken = state.withLock { state in
      guard !state.ended, state.bytes + bytes.count <= Self.maxWaiting else {
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

  /// Writes the waiting lines and ends, within one second.
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
        // A failing log must not stop the process.
        _ = DescriptorIO.writeAll(bytes, to: descriptor)
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
}
