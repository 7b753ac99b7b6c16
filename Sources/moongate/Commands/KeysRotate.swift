import ArgumentParser
import MoongateCore
import MoongateStore

/// `moongate keys add`.
struct AddKey: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Make a key that is to be the current one, for gateways that share a store.",
    discussion: """
      Nothing is made with it before `moongate keys rotate`. Copy the key file to every gateway first (one whose key comes from the environment is \
      restarted): one that does not know the key would refuse what another has made with it.
      """)

  @OptionGroup var configuration: ConfigurationOption

  func run() async throws {
    let source = KeySource(try configuration.generation().gateway.key)
    try await source.change { masters in
      if let coming = masters.members.first(where: { $0.role == .coming }) {
        throw StartProblem("\(coming.name) is coming already: `moongate keys rotate` makes it the current key.")
      }
      let added = try masters.adding()
      source.tell("\(added.members[added.members.count - 1].name) is coming.")
      return added
    }
  }
}

/// `moongate keys rotate`.
struct RotateKeys: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate", abstract: "Make the coming key the current one, or a new one where none is coming.",
    discussion: """
      The one before stays as a former key: codes under way, PINs, passwords, authenticator apps, sessions and devices stay good. Each PIN and \
      password moves to the new key at its owner's next sign-in, everything else when it is written next.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Flag(help: "Rotate at once, whichever gateways serve from the store and do not know the key.") var force = false

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
      source.tell(
        "\(rotated.current.name) is the current key; \(masters.current.name) is a former one, and what was made with it stays good."
      )
      return rotated
    }
  }

  private func nodes() async throws -> [ServingNode] {
    do {
      return try await OperatorStore.with(configuration) { try await $0.store.nodes(at: $0.now) }
    } catch let problem as StartProblem {
      throw StartProblem(
        "Whether other gateways serve from the store could not be seen. \(problem.sentence) To rotate even so: --force.",
        status: .couldNotRun)
    }
  }

  /// A gateway that does not know the key would refuse what another makes with it.
  private func demandKnown(_ key: String) async throws {
    let strangers = try await nodes().filter { !$0.keys.contains(key) }
    guard strangers.isEmpty else {
      throw StartProblem(
        """
        \(key) is not known yet to \(strangers.map(\.name).joined(separator: ", ")), and each gateway must know a key before another uses it. Bring the key \
        file there; a gateway takes it within a second and tells it within three more. To rotate at once: --force; what one gateway makes then, those \
        refuse that have the old file.
        """)
    }
  }

  private func demandAlone() async throws {
    let nodes = try await nodes()
    guard nodes.count < 2 else {
      throw StartProblem(
        """
        \(nodes.count) gateways serve from this store, and each must know a key before another uses it. Run `moongate keys add`, bring the key file to \
        all of them, and then rotate. To rotate at once: --force; what one gateway makes then, those refuse that have the old file.
        """)
    }
  }
}

extension MasterKeys {
  /// The ring with a fresh key more.
  /// - Throws: a sentence where there are too many.
  fileprivate func adding() throws(StartProblem) -> MasterKeys {
    do { return try adding(MasterKey.fresh()) } catch {
      throw StartProblem(
        "There are \(members.count) keys already: `moongate keys retire` one that nothing is under any more.")
    }
  }
}
