import MoongateCore
import MoongateHTTP

/// The addresses that this gateway listens on in place of those in gateway.lua. They come from the command line or from
/// inherited sockets.
struct ListenAddresses {
  /// The public address; nil to use that of gateway.lua.
  var listen: ListenAddress?
  /// The admin address; nil to use that of gateway.lua.
  var admin: ListenAddress?
  /// The sockets that systemd opened. They listen at `listen` and `admin`.
  private(set) var sockets = InheritedSockets()

  /// - Parameters:
  ///   - listen: the public address from the command line.
  ///   - admin: the admin address from the command line.
  ///   - sockets: inherited sockets. Their addresses take precedence over gateway.lua and the command line.
  init(listen: ListenAddress? = nil, admin: ListenAddress? = nil, sockets: InheritedSockets = InheritedSockets()) {
    self.listen = sockets.listen?.address ?? listen
    self.admin = sockets.admin?.address ?? admin
    self.sockets = sockets
  }

  /// Messages about inherited sockets whose address differs from gateway.lua.
  func differences(from gateway: GatewaySettings) -> [String] {
    [("listen", sockets.listen, gateway.listen), ("admin", sockets.admin, gateway.admin)].compactMap {
      name, socket, said in
      guard let socket, socket.address != said else { return nil }
      return
        "`\(name)` in gateway.lua is \(said), and \(sockets.kind) listens on \(socket.address). The socket's address is used."
    }
  }

  /// Problems of a configuration that is safe with the addresses of gateway.lua, but exposed to other machines at the
  /// addresses of this gateway.
  func problems(of gateway: GatewaySettings) -> [ConfigurationProblem] {
    var problems = LocalProviders.problems(of: gateway, listen: listen ?? gateway.listen)
    if let admin, !admin.isLoopback, gateway.allAdminTokens.isEmpty {
      let location = gateway.locations["admin"] ?? SourceLocation(file: "gateway.lua", line: 0)
      let message =
        "other machines can reach \(admin) (\(sockets.admin == nil ? "--admin" : sockets.kind)), and the admin listener has no access control: set a token, for example "
        + "admin = { address = \"\(gateway.admin)\", token = env \"MOONGATE_ADMIN_TOKEN\" }"
      problems.append(ConfigurationProblem(location: location, path: "admin", message: message))
    }
    return problems
  }
}
