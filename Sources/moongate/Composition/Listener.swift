import Foundation
import MoongateCore
import MoongateHTTP
import MoongateProgram
import NIOCore
import ServiceLifecycle

/// One listener of the gateway, on a new or an inherited socket.
struct Listener: Service {
  /// The setting that names the address: `listen` or `admin`.
  let name: String
  let address: ListenAddress
  /// The inherited socket; nil to open one at `address`.
  let inherited: ListeningSocket?
  let application: any ListeningApplication
  /// Makes the socket available to upgrades.
  let handle: ListenerHandle
  /// Must finish before the listener accepts connections.
  var turn: TakeOver?
  let onListening: @Sendable () -> Void

  func run() async throws {
    do {
      let socket = try inherited ?? ListeningSocket.open(address)
      await turn?.waitForTurn()
      handle.socket = socket
      try await application.serve(socket, gate: handle.gate) { onListening() }
      // Wait for the orderly shutdown: a service that ends early counts as failed.
      if handle.gate.isGivenUp { try? await gracefulShutdown() }
    } catch let problem as ListeningSocket.Problem {
      throw StartProblem(Self.sentence(problem.code, name: name, address: address))
    } catch let error as IOError {
      throw StartProblem(Self.sentence(error.errnoCode, name: name, address: address))
    } catch let error as SocketAddressError {
      throw StartProblem(
        "The gateway cannot listen on \(address) (`\(name)` in gateway.lua): the address does not exist on this machine (\(error))."
      )
    }
  }

  static func sentence(_ code: CInt, name: String, address: ListenAddress) -> String {
    switch code {
    case EADDRINUSE:
      "Port \(address.port) on \(address.host) is in use by another program. Stop it, or set another port in `\(name)` in gateway.lua."
    case EACCES, EPERM:
      "Port \(address.port) on \(address.host) cannot be used by this user. Set a port above 1023 in `\(name)` in gateway.lua, or let systemd open the "
        + "port (moongate.socket)."
    case EADDRNOTAVAIL:
      "This machine has no address \(address.host). Correct `\(name)` in gateway.lua."
    default: "The gateway cannot listen on \(address): \(String(cString: strerror(code)))."
    }
  }
}
