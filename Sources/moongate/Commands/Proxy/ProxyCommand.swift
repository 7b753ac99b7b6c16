import ArgumentParser
import Foundation
import MoongateCore
import MoongateProgram

/// `moongate proxy NAME`: prints the configuration of a proxy that asks the gateway about each request.
struct ProxyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "proxy",
    abstract: "Print the configuration of a proxy that asks the gateway about each request (forward-auth).",
    discussion: """
      Prints the configuration of the guide for the proxy, with the address of `listen`, the host of `public_url`, and \
      every header that `identity` of a route names: the proxy removes it from the requests of clients and copies it from \
      the gateway's answers. Change the port 8000 and the service 127.0.0.1:3000. Several files are printed one after the \
      other; the first line of each names it. Print it again after a change of `identity` or `bearer` in routes.lua. \
      Routes with `identity.basic` or `bearer` also need `forward_auth_credentials = true` in gateway.lua.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The proxy.") var name: ForwardAuthConfiguration.Proxy

  func run() async throws {
    let generation = try configuration.generation()
    let printed = ForwardAuthConfiguration(name, generation.routes, generation.gateway)
    if let header = printed.unwritable {
      throw StartProblem(
        "`identity` in routes.lua names the header \(header), which proxies cannot copy. Use letters, digits, - and _.")
    }
    print(printed.text, terminator: "")
  }
}

extension ForwardAuthConfiguration.Proxy: ExpressibleByArgument {}
