import Foundation
import MoongateCore
import NIOCore
import ServiceLifecycle

/// A listening service that says in a sentence why it cannot listen.
struct Listener: Service {
  /// The setting that names the address: `listen` or `admin`.
  let name: String
  let address: ListenAddress
  let service: any Service

  func run() async throws {
    do {
      try await service.run()
    } catch let error as IOError {
      throw StartProblem(Self.sentence(error.errnoCode, name: name, address: address) ?? "The gateway cannot listen on \(address): \(error)")
    } catch let error as SocketAddressError {
      throw StartProblem("The gateway cannot listen on \(address), `\(name)` in gateway.lua: there is no such address here (\(error)).")
    }
  }

  private static func sentence(_ code: CInt, name: String, address: ListenAddress) -> String? {
    switch code {
    case EADDRINUSE:
      "Port \(address.port) on \(address.host) is taken by another program. Stop it, or give `\(name)` in gateway.lua another port."
    case EACCES:
      "Port \(address.port) on \(address.host) may not be used by this user. Give `\(name)` in gateway.lua a port above 1023."
    case EADDRNOTAVAIL:
      "This machine has no address \(address.host). Give `\(name)` in gateway.lua one that it has."
    default: nil
    }
  }
}
