import Foundation
import MoongateCore
import MoongateHTTP
import MoongateProgram

/// The sockets that systemd opened for this process (sd_listen_fds(3)): descriptors from 3 on. `LISTEN_FDS` has their
/// number, and `LISTEN_FDNAMES` their names, `listen` and `admin`.
struct InheritedSockets {
  /// The socket of the public listener.
  private(set) var listen: ListeningSocket?
  /// The socket of the admin listener.
  private(set) var admin: ListeningSocket?

  /// The origin of the sockets, for messages.
  private(set) var kind = "systemd's socket"

  private static let variables = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]
  private static let most = 64

  /// No sockets.
  init() {}

  /// The sockets of the previous process (`moongate upgrade`).
  /// - Throws: an error if a descriptor is not a listening socket.
  init(listen: (descriptor: CInt, address: ListenAddress), admin: (descriptor: CInt, address: ListenAddress))
    throws(StartProblem)
  {
    _ = try Self.address(of: listen.descriptor, name: "listen")
    _ = try Self.address(of: admin.descriptor, name: "admin")
    self.listen = ListeningSocket(descriptor: listen.descriptor, address: listen.address)
    self.admin = ListeningSocket(descriptor: admin.descriptor, address: admin.address)
    kind = "the socket of the previous process"
  }

  /// Takes the sockets and removes the variables, so that programs started by this process do not use them. Call once,
  /// before other threads read the environment.
  static func take() throws(StartProblem) -> InheritedSockets {
    let taken = try InheritedSockets(environment: ProcessInfo.processInfo.environment, process: getpid())
    for variable in variables { unsetenv(variable) }
    return taken
  }

  /// - Parameters:
  ///   - process: the id of this process. Sockets for another process are ignored.
  ///   - first: the first descriptor.
  /// - Throws: an error with exit status 2 if the gateway cannot use one of the sockets.
  init(environment: [String: String], process: pid_t, first: CInt = 3) throws(StartProblem) {
    // Attack: variables inherited from a parent process refer to descriptors that belong to something else in this
    // process.
    guard let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }), count > 0,
      environment["LISTEN_PID"] == "\(process)"
    else { return }
    guard count <= Self.most else {
      throw Self.problem("LISTEN_FDS is \(count), which is more sockets than the gateway has listeners.")
    }
    let names = (environment["LISTEN_FDNAMES"] ?? "").split(separator: ":", omittingEmptySubsequences: false).map(
      String.init)
    for index in 0..<count {
      let descriptor = first + index
      let name = Int(index) < names.count ? names[Int(index)] : "unknown"
      // Programs that the gateway starts must not inherit its sockets.
      guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else {
        throw Self.problem("Descriptor \(descriptor) of LISTEN_FDS is not open.")
      }
      let socket = ListeningSocket(descriptor: descriptor, address: try Self.address(of: descriptor, name: name))
      switch name {
      case "listen" where listen == nil: listen = socket
      case "admin" where admin == nil: admin = socket
      case "listen", "admin":
        throw Self.problem(
          "Two sockets are named \(name). One is enough: ListenStream=[::]:443 accepts IPv4 connections too.")
      default:
        throw Self.problem(
          "The socket for \(socket.address) is named \"\(LineLog.plain(name))\". Set FileDescriptorName=listen or FileDescriptorName=admin."
        )
      }
    }
  }

  /// The address that a socket listens on.
  private static func address(of descriptor: CInt, name: String) throws(StartProblem) -> ListenAddress {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
    var port = [CChar](repeating: 0, count: Int(NI_MAXSERV))
    let isNamed = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        getsockname(descriptor, address, &length) == 0
          && [AF_INET, AF_INET6].contains(Int32(address.pointee.sa_family))
          && getnameinfo(
            address, length, &host, socklen_t(host.count), &port, socklen_t(port.count), NI_NUMERICHOST | NI_NUMERICSERV
          ) == 0
      }
    }
    guard isNamed, option(SO_TYPE, of: descriptor) == CInt(SOCK_STREAM.rawValue),
      option(SO_ACCEPTCONN, of: descriptor) == 1,
      let number = Int(text(port))
    else {
      throw problem(
        "The socket named \"\(LineLog.plain(name))\" is not a listening TCP socket. Set ListenStream=ADDRESS:PORT and remove Accept=."
      )
    }
    return ListenAddress(host: text(host), port: number)
  }

  private static func text(_ characters: [CChar]) -> String {
    String(decoding: characters.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  private static func option(_ option: CInt, of descriptor: CInt) -> CInt {
    var value: CInt = -1
    var length = socklen_t(MemoryLayout<CInt>.size)
    return getsockopt(descriptor, SOL_SOCKET, option, &value, &length) == 0 ? value : -1
  }

  private static func problem(_ sentence: String) -> StartProblem {
    StartProblem("Sockets from systemd: \(sentence)", status: .couldNotRun)
  }
}
