import MoongateCore
import NIOCore
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A listening socket, opened here or passed by the process that started this one.
///
/// It stays open until the listener shuts down, so that it can be passed to a successor process. The server accepts on
/// a duplicate.
package final class ListeningSocket: Sendable {
  /// Why the socket could not be opened.
  package struct Problem: Error {
    /// The `errno` of the failed call.
    package let code: CInt
  }

  /// The length of the queue of connections that wait to be accepted. The kernel allows net.core.somaxconn at most,
  /// 4096 by default. A connection that finds the queue full waits a second for its next attempt, so a short queue
  /// makes a crowd of clients slow although the gateway is idle.
  private static let backlog: CInt = 4096

  /// The address on which it actually listens.
  package let address: ListenAddress
  private let descriptor: Mutex<CInt?>

  /// Takes ownership of a bound and listening socket.
  /// - Parameter descriptor: closed together with this value.
  package init(descriptor: CInt, address: ListenAddress) {
    self.address = address
    self.descriptor = Mutex(descriptor)
  }

  deinit { release() }

  /// Opens a socket at the address.
  /// - Throws: `Problem`; `SocketAddressError` if the host has no address.
  package static func open(_ address: ListenAddress) throws -> ListeningSocket {
    let resolved = try SocketAddress.makeAddressResolvingHost(address.host, port: address.port)
    let family = resolved.protocol == .inet6 ? AF_INET6 : AF_INET
    let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw Problem(code: errno) }
    var on: CInt = 1
    let isBound =
      setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<CInt>.size)) == 0
      && resolved.withSockAddr { bind(descriptor, $0, socklen_t($1)) } == 0 && listen(descriptor, backlog) == 0
    guard isBound else {
      let problem = Problem(code: errno)
      close(descriptor)
      throw problem
    }
    return ListeningSocket(descriptor: descriptor, address: address)
  }

  /// A duplicate descriptor of the socket, for the server or a successor process. The caller must close it.
  /// - Throws: `Problem`, with `EBADF` if the socket is closed.
  package func duplicate() throws(Problem) -> CInt {
    let copy = descriptor.withLock { descriptor -> Result<CInt, Problem> in
      guard let descriptor else { return .failure(Problem(code: EBADF)) }
      let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
      return copy < 0 ? .failure(Problem(code: errno)) : .success(copy)
    }
    return try copy.get()
  }

  /// Sets the length of the queue of waiting connections again, also of a socket that was passed.
  func setQueueLength() { descriptor.withLock { descriptor in if let descriptor { listen(descriptor, Self.backlog) } } }

  /// Closes the socket. Connections are refused from now on, unless another process, such as systemd, holds the socket
  /// too.
  package func release() {
    let open = descriptor.withLock { descriptor in
      defer { descriptor = nil }
      return descriptor
    }
    if let open { close(open) }
  }
}
