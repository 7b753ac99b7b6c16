import Foundation
import NIOCore
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// An upstream that reads one request slowly on its own thread and answers it when it is complete.
final class SlowReader: Sendable {
  let port: Int
  private let listener: Int32

  /// - Parameters:
  ///   - size: the size of the request body, in bytes.
  ///   - pause: the pause between pieces of 64 KiB, in seconds.
  ///   - stopsAfter: the number of bytes after which it stops reading.
  init(size: Int, pause: Double, stopsAfter: Int = .max) throws {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    self.listener = listener
    var room: Int32 = 256 * 1024
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size))
    let address = try SocketAddress(ipAddress: "127.0.0.1", port: 0)
    guard address.withSockAddr({ bind(listener, $0, socklen_t($1)) }) == 0, listen(listener, 8) == 0 else {
      throw POSIXError(.EADDRINUSE)
    }
    var bound = [UInt8](repeating: 0, count: 128)
    var length = socklen_t(bound.count)
    bound.withUnsafeMutableBytes { bytes in
      _ = bytes.withMemoryRebound(to: sockaddr.self) { getsockname(listener, $0.baseAddress, &length) }
    }
    // An IPv4 address: family, then the port in network order.
    port = Int(bound[2]) << 8 | Int(bound[3])
    Thread.detachNewThread {
      let client = accept(listener, nil, nil)
      guard client >= 0 else { return }
      var buffer = [UInt8](repeating: 0, count: 64 * 1024)
      var got = 0
      while got < size, got < stopsAfter {
        let count = recv(client, &buffer, buffer.count, 0)
        guard count > 0 else { break }
        got += count
        usleep(UInt32(pause * 1_000_000))
      }
      if got >= size {
        let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8)
        send(client, answer, answer.count, Int32(MSG_NOSIGNAL))
      }
      // Stays connected until the gateway closes the connection.
      var poller = pollfd(fd: client, events: 0, revents: 0)
      poll(&poller, 1, 30_000)
      Glibc.close(client)
    }
  }

  deinit { Glibc.close(listener) }
}
