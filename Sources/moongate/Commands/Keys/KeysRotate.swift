import ArgumentParser
import MoongateCore
import MoongateProgram
import MoongateStore

/// `moongate keys add`.
struct AddKey: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Add the next key, for gateways that share a store.",
    discussion: """
      The key is not used before `moongate keys rotate`. Copy the key file to every gateway first (restart a gateway whose key comes from the environment): \
      a gateway that does not know the key would refuse data that another gateway made with it.
      """)

  @OptionGroup var configuration: ConfigurationOption

  func run() async throws {
    let source = KeySource(try configuration.generation().gateway.key)
    try await source.change { masters in
      if let coming = masters.members.first(where: { $0.role == .coming }) {
        throw StartProblem("\(coming.name) is already the next key. `moongate keys rotate` makes it the current key.")
      }
      let added = try masters.adding()
      source.printNotice("\(added.members[added.members.count - 1].name) is coming.")
      return added
    }
  }
}

/// `moongate keys rotate`.
struct RotateKeys: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate", abstract: "Make the next key the current key; create one if none exists.",
    discussion: """
      The previous key stays as a former key: pending codes, PINs, passwords, authenticator apps, sessions and devices stay valid. Each PIN and \
      password moves to the new key at its owner's next sign-in, everything else when it is next written.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Flag(help: "Rotate at once, even if other gateways of the store do not know the key yet.") var force = false

  func run() async throws {
    let source = KeySource(try configuration.generation().gateway.key)
    try await source.change { masters in
      let rotated: MasterKeys
      if let next = masters.rotated() {
        if !force { try await demandKnown(next.current.name) }
        rotated = next
      } else {
        if !force { try await demandAlone() }
        rotated = try masters.adding().rotated() ?? masters
      }
      source.printNotice(
        "\(rotated.current.name) is the current key; \(masters.current.name) is a former key, and everything made with it stays valid."
      )
      return rotated
    }
  }

  private func nodes() async throws -> [ServingNode] {
    do {
      return try await OperatorStore.with(configuration) { try await $0.store.nodes(at: $0.now) }
    } catch let problem as StartProblem {
      throw StartProblem(
        "The other gateways of the store could not be checked. \(problem.sentence) To rotate anyway, use --force.",
        status: .couldNotRun)
    }
  }

  /// Checks that every gateway knows the key. A gateway that does not know it would refuse data that another makes with
  /// it.
  private func demandKnown(_ key: String) async throws {
    let unaware = try await nodes().filter { !$0.keys.contains(key) }
    guard unaware.isEmpty else {
      throw StartProblem(
        """
        \(key) is not yet known to \(unaware.map(\.name).joined(separator: ", ")), and every gateway must know a key before another uses it. Copy the key \
        file there. A gateway reloads it within a second and reports it within three more. To rotate at once, use --force; gateways with the old file then \
        refuse what others make with the new key.
        """)
    }
  }

  private func demandAlone() async throws {
    let nodes = try await nodes()
    guard nodes.count < 2 else {
      throw StartProblem(
        """
        \(nodes.count) gateways use this store, and every gateway must know a key before another uses it. Run `moongate keys add`, copy the key file to \
        all of them, and then rotate. To rotate at once, use --force; gateways with the old file then refuse what others make with the new key.
        """)
    }
  }
}

extension MasterKeys {
  /// The ring with one more new key.
  /// - Throws: an error if there are too many keys.
  fileprivate func adding() throws(StartProblem) -> MasterKeys {
    do { return try adding(MasterKey.fresh()) } catch {
      throw StartProblem(
        "There are already \(members.count) keys. Remove an unused one with `moongate keys retire`.")
    }
  }
}
