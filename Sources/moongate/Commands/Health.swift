import ArgumentParser
import Foundation
import MoongateCore

/// `moongate health`: whether the gateway on this machine is ready, for health checks of containers and scripts.
struct Health: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Tell whether the gateway that runs is ready.",
    discussion: """
      Asks /readyz of the admin listener, which needs no token, and prints one sentence. Exits with 0 if the gateway is ready and with 1 if it is not. \
      Health checks should name the listener by --admin: no configuration is read then, so a mistake in a file does not make a gateway that serves look ill. \
      With --alive it asks /healthz, which needs no store: what restarts a gateway should ask this.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Option(help: "The admin listener, HOST:PORT; that of the configuration unless said otherwise.") var admin: String?

  @Flag(help: "Only whether it lives; the store may be away.") var alive = false

  func run() async throws {
    let address = try address()
    let state = alive ? "alive" : "ready"
    let answer: AdminClient.Answer?
    // What listens and does not answer is ill too: exit status 1.
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

  /// - Throws: exit status 2 if `--admin` is no address or there is no configuration; 1, with its problems, if the
  ///   configuration is refused.
  private func address() throws -> ListenAddress {
    guard let admin else { return try configuration.generation().gateway.admin.forClients }
    guard let address = ListenAddress(admin), address.port > 0 else {
      throw StartProblem(
        "--admin \(admin) is no address. Write HOST:PORT, such as 127.0.0.1:9901.", status: .couldNotRun)
    }
    return address.forClients
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
  /// Where a client on the same machine reaches a listener: one that listens on all addresses is reached by loopback.
  var forClients: ListenAddress {
    switch host {
    case "0.0.0.0": ListenAddress(host: "127.0.0.1", port: port)
    case "::": ListenAddress(host: "::1", port: port)
    default: self
    }
  }
}
