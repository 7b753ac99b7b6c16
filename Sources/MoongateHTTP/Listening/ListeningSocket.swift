import MoongateCore
import NIOCore
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A socket that listens for the connections of one listener: opened here, or handed over by the program that started
/// this one.
///
/// It stays open, and its descriptor known, until the listener shuts down: a program that takes over can be given it.
/// The server accepts on a duplicate.
package final class ListeningSocket: Sendable {
  /// Why there is no such socket.
  package struct Problem: Error {
    /// The `errno` of the call that failed.
    package let code: CInt
  }

  /// How many connections wait to be accepted.
  private static let backlog: CInt = 256

  /// Where it really listens.
  package let address: ListenAddress
  private let descriptor: Mutex<CInt?>

  /// Takes over a socket that is bound and listening.
  /// - Parameter descriptor: closed with this value.
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

  /// Another descriptor of the same socket, which the caller closes: for the server, or for a program that takes over.
  /// - Throws: `Problem`, with `EBADF` if the socket is closed.
  package func duplicate() throws(Problem) -> CInt {
    let copy = descriptor.withLock { descriptor -> Result<CInt, Problem> in
      guard let descriptor else { return .failure(Problem(code: EBADF)) }
      let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
      return copy < 0 ? .failure(Problem(code: errno)) : .success(copy)
    }
    return try copy.get()
  }

  /// Lets go of the socket. Connections are refused from now on, unless another process holds it too, such as systemd.
  package func release() {
    let open = descriptor.withLock { descriptor in
      defer { descriptor = nil }
      return descriptor
    }
    if let open { close(open) }
  }
}
