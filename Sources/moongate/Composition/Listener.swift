import Foundation
import MoongateCore
import MoongateHTTP
import NIOCore
import ServiceLifecycle
import Synchronization

/// A listener, as an upgrade sees it.
final class ListenerHandle: Sendable {
  let gate = AcceptGate()
  private let held = Mutex<ListeningSocket?>(nil)

  /// nil before it listens.
  var socket: ListeningSocket? {
    get { held.withLock { $0 } }
    set { held.withLock { $0 = newValue } }
  }
}

/// One listener of the gateway, on a socket that it opens or was handed over. Says in a sentence why it cannot listen.
struct Listener: Service {
  /// The setting that names the address: `listen` or `admin`.
  let name: String
  let address: ListenAddress
  /// The socket that was handed over; nil: it opens one at `address`.
  let inherited: ListeningSocket?
  let application: any ListeningApplication
  /// Where others find its socket.
  let handle: ListenerHandle
  /// Awaited before it accepts.
  var turn: TakeOver?
  let onListening: @Sendable () -> Void

  func run() async throws {
    do {
      let socket = try inherited ?? ListeningSocket.open(address)
      await turn?.come()
      handle.socket = socket
      try await application.serve(socket, gate: handle.gate) { onListening() }
      // The gateway ends in its order; a service that ends before is taken for one that failed.
      if handle.gate.isGivenUp { try? await gracefulShutdown() }
    } catch let problem as ListeningSocket.Problem {
      throw StartProblem(Self.sentence(problem.code, name: name, address: address))
    } catch let error as IOError {
      throw StartProblem(Self.sentence(error.errnoCode, name: name, address: address))
    } catch let error as SocketAddressError {
      throw StartProblem(
        "The gateway cannot listen on \(address), `\(name)` in gateway.lua: there is no such address here (\(error)).")
    }
  }

  static func sentence(_ code: CInt, name: String, address: ListenAddress) -> String {
    switch code {
    case EADDRINUSE:
      "Port \(address.port) on \(address.host) is taken by another program. Stop it, or give `\(name)` in gateway.lua another port."
    case EACCES, EPERM:
      "Port \(address.port) on \(address.host) may not be used by this user. Give `\(name)` in gateway.lua a port above 1023, or let systemd open the "
        + "port (moongate.socket)."
    case EADDRNOTAVAIL:
      "This machine has no address \(address.host). Give `\(name)` in gateway.lua one that it has."
    default: "The gateway cannot listen on \(address): \(String(cString: strerror(code)))."
    }
  }
}
