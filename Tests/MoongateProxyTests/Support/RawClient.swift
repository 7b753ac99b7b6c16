import Foundation
import NIOCore
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// A client that sends exactly the given bytes and reads the response.
///
/// Its calls block, so they run on dedicated threads, not on the pool of the gateway's tasks.
final class RawClient: Sendable {
  private let descriptor: Int32

  init(port: Int) async throws {
    descriptor = try await Self.run {
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      let result = try SocketAddress(ipAddress: "127.0.0.1", port: port).withSockAddr { address, size in
        connect(descriptor, address, socklen_t(size))
      }
      guard result == 0 else { throw POSIXError(.ECONNREFUSED) }
      return descriptor
    }
  }

  deinit { Glibc.close(descriptor) }

  func send(_ text: String) async throws { try await send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) async throws {
    let descriptor = descriptor
    try await Self.run {
      var sent = 0
      while sent < bytes.count {
        let count = bytes[sent...].withUnsafeBytes {
          Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard count > 0 else { return }
        sent += count
      }
    }
  }

  /// Sends the bytes repeatedly until no more are accepted for half a second.
  /// - Returns: the number of accepted bytes.
  func sendUntilBlocked(_ bytes: [UInt8], times: Int) async throws -> Int {
    let descriptor = descriptor
    return try await Self.run {
      let many = Array(repeatElement(bytes, count: 1000).joined())
      var total = 0
      while total < bytes.count * times {
        // Continue where the last send ended, so that requests stay complete.
        let start = total % bytes.count
        let count = many[start...].withUnsafeBytes {
          Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        }
        if count > 0 {
          total += count
          continue
        }
        var poller = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        guard poll(&poller, 1, 500) > 0 else { return total }
      }
      return total
    }
  }

  /// Closes the output; reading is still possible.
  func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Reads until the condition holds, the connection ends, or the time limit passes.
  /// - Returns: the received text, and whether the connection ended.
  func read(for seconds: Double = 5, until done: @escaping @Sendable (String) -> Bool = { _ in false }) async throws
    -> (text: String, ended: Bool)
  {
    let descriptor = descriptor
    return try await Self.run {
      var got: [UInt8] = []
      let end = Date().addingTimeInterval(seconds)
      var buffer = [UInt8](repeating: 0, count: 65536)
      while true {
        let text = String(decoding: got, as: UTF8.self)
        if done(text) { return (text, false) }
        let left = end.timeIntervalSinceNow
        guard left > 0 else { return (text, false) }
        var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&poller, 1, Int32(min(left, 1) * 1000) + 1) > 0 else { continue }
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return (text, true) }
        got += buffer[..<count]
      }
    }
  }

  /// Reads `count` complete responses with a Content-Length.
  func answers(_ count: Int = 1, for seconds: Double = 5) async throws -> String {
    try await read(for: seconds) { text in Self.complete(text) >= count }.text
  }

  static func complete(_ text: String) -> Int {
    var rest = text[...]
    var count = 0
    while let end = rest.range(of: "\r\n\r\n") {
      let head = rest[..<end.lowerBound].lowercased()
      rest = rest[end.upperBound...]
      if let field = head.range(of: "content-length: ") {
        let length = Int(head[field.upperBound...].prefix { $0.isNumber }) ?? 0
        guard rest.utf8.count >= length else { return count }
        rest = rest[rest.utf8.index(rest.startIndex, offsetBy: length)...]
      }
      count += 1
    }
    return count
  }

  private static func run<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
    }
  }
}
