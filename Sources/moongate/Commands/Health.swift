import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram

/// `moongate health`: reports whether the gateway on this machine is ready, for health checks of containers and
/// scripts.
struct Health: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Report whether the running gateway is ready.",
    discussion: """
      Requests /readyz of the admin listener, which needs no token, and prints one sentence. Exit status: 0 if the gateway is ready, 1 if not. \
      In health checks, pass the listener with --admin. The command then does not read the configuration, so a mistake in a file cannot fail the check. \
      Without --admin, it reads only `admin` of gateway.lua. \
      With --alive it requests /healthz, which does not need the store. Use --alive for checks that restart the gateway.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var admin: AdminOption
  @Flag(help: "Check only that the process is alive, even if the store is unavailable.") var alive = false

  func run() async throws {
    let address = try address()
    let state = alive ? "alive" : "ready"
    let answer: AdminClient.Answer?
    // A listener that does not answer is unhealthy too: exit status 1.
    do throws(StartProblem) {
      answer = try await AdminClient(asking: address).get(alive ? "/healthz" : "/readyz")
    } catch {
      throw StartProblem(error.sentence)
    }
    guard let answer else { throw StartProblem("No gateway listens at \(address).") }
    guard answer.status == 200 else {
      throw StartProblem("The gateway at \(address) is not \(state). \(Self.reasons(answer))")
    }
    print("The gateway at \(address) is \(state).")
  }

  /// - Throws: exit status 2 if `--admin` is not an address or the configuration folder is missing; exit status 1 if
  ///   `admin` of gateway.lua cannot be read.
  private func address() throws(StartProblem) -> ListenAddress {
    if let named = try admin.named() { return named.forClients }
    return try configuration.adminListener().address.forClients
  }

  private static func reasons(_ answer: AdminClient.Answer) -> String {
    struct Document: Decodable { let reasons: [String] }
    guard let document = try? JSONDecoder().decode(Document.self, from: answer.body), !document.reasons.isEmpty else {
      return "It answered \(answer.status)."
    }
    return document.reasons.joined(separator: " ")
  }
}

extension ListenAddress {
  /// The address for a client on the same machine: loopback if the listener uses all addresses.
  var forClients: ListenAddress {
    switch host {
    case "0.0.0.0": ListenAddress(host: "127.0.0.1", port: port)
    case "::": ListenAddress(host: "::1", port: port)
    default: self
    }
  }
}
