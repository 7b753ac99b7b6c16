import Foundation
import MoongateCore
import MoongateProgram

/// One end of the socket pair between two processes of an upgrade. Reads block, so use a dedicated thread.
final class ControlSocket: Sendable {
  enum Reading: Equatable {
    case line(String)
    /// The other process has exited or exceeded the line limit.
    case end
    case silence
  }

  /// The maximum line length. A line of the older process contains its outbox.
  private static let longest = 8 << 20

  let descriptor: CInt

  /// - Parameter descriptor: is closed with this object.
  init(descriptor: CInt) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  /// Creates both ends. Only the intended program may inherit the other end.
  static func pair() throws(StartProblem) -> (own: ControlSocket, other: ControlSocket) {
    var ends: [CInt] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
      throw StartProblem("No more files can be opened: \(String(cString: strerror(errno))).")
    }
    return (ControlSocket(descriptor: ends[0]), ControlSocket(descriptor: ends[1]))
  }

  /// Sends a line. A failure to send shows at the next read.
  func send(_ line: String) {
    _ = DescriptorIO.sendAll(Array((line + "\n").utf8), to: descriptor)
  }

  /// Reads the next line and leaves the following ones unread.
  /// - Parameter limit: the time limit.
  func next(within limit: Duration) -> Reading {
    var line: [UInt8] = []
    let end = ContinuousClock.now + limit
    while line.count < Self.longest {
      switch Self.wait([descriptor], until: end) {
      case []: return .silence
      default: break
      }
      var part = [UInt8](repeating: 0, count: 64 * 1024)
      // Peek, then read up to the end of the line.
      let seen = recv(descriptor, &part, part.count, Int32(MSG_PEEK))
      if seen < 0, errno == EINTR { continue }
      guard seen > 0 else { return .end }
      let found = part[..<seen].firstIndex(of: UInt8(ascii: "\n"))
      let taken = recv(descriptor, &part, found.map { $0 + 1 } ?? seen, 0)
      guard taken > 0 else { return .end }
      line += part[..<(found ?? taken)]
      if found != nil { return .line(String(decoding: line, as: UTF8.self)) }
    }
    return .end
  }

  /// Ends a waiting read at once, as if the other process had exited.
  func stopReading() { shutdown(descriptor, Int32(SHUT_RD)) }

  /// Whether the other process has exited or closed its end. Does not block.
  var isOver: Bool { Self.isOver(descriptor) }

  /// The same for a descriptor without an object.
  static func isOver(_ descriptor: CInt) -> Bool {
    var byte: UInt8 = 0
    let seen = recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
    return seen == 0 || seen < 0 && errno != EAGAIN && errno != EINTR
  }

  /// Waits until a descriptor is readable.
  /// - Returns: the readable descriptors; empty after the time limit.
  static func wait(_ descriptors: [CInt], until end: ContinuousClock.Instant) -> [CInt] {
    var watched = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    while true {
      let left = (end - ContinuousClock.now) / .milliseconds(1)
      let ready = poll(&watched, nfds_t(watched.count), Int32(max(0, min(left.rounded(.up), 600_000))))
      if ready < 0, errno == EINTR { continue }
      return watched.filter { $0.revents != 0 }.map(\.fd)
    }
  }
}
