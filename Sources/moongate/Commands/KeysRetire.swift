import ArgumentParser
import MoongateCore
import MoongateStore

/// `moongate keys retire NAME`.
struct RetireKey: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retire", abstract: "Take a key out of the ring, once nothing needs it any more.",
    discussion: """
      No gateway may still make things with it: each must have the key file of after the rotation. Records that only the gateway's own keys close are \
      moved to the current key; PINs and passwords move when their owners sign in, and until then the key stays. What names counters and locks, and what \
      recognises devices, stays in the key file as a `retired` line: it opens nothing else. --completely takes that out too, while no gateway serves; one that \
      was interrupted is finished by the same command.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The key, as `moongate keys show` names it.") var name: String
  @Flag(help: "Take it even so: PINs and passwords that are still under it are removed, and their owners set new ones.")
  var force = false

  @Flag(help: "Somebody else may have the key: devices that were recognised by it are new ones.") var leaked = false
  @Flag(help: "Leave nothing of it: locks and counts begin anew where it is the oldest key. No gateway may serve then.")
  var completely = false

  func run() async throws {
    let source = KeySource(try configuration.generation().gateway.key)
    try await source.change { masters in
      guard let member = masters.members.first(where: { $0.name == name }) else {
        throw StartProblem("There is no key \(name): `moongate keys show` lists those that there are.")
      }
      guard let without = masters.without(name) else {
        throw StartProblem("\(name) is the current key: make another one current first, by `moongate keys rotate`.")
      }
      return try await OperatorStore.with(configuration, finishesRetirement: true) { opened in
        // One that was interrupted had begun to leave nothing of it.
        guard !completely, opened.heir == nil else {
          try await release(opened, masters, without, source, isComplete: true)
          return without
        }
        guard member.role != .retired else {
          throw StartProblem(
            "\(name) is retired already. It still names counters and devices; --completely ends that, while no gateway serves."
          )
        }
        let left = masters.retiring(name, recognising: !leaked, at: opened.now) ?? without
        try await release(opened, masters, left, source, isComplete: false)
        return left
      }
    }
  }

  /// What a gateway makes with a key that is gone, nobody opens.
  ///
  /// Attack: who guesses while some gateways count by one key and some by another has all of his tries twice.
  private func demandUnused(by nodes: [ServingNode], isOldest: Bool) throws(StartProblem) {
    guard isOldest else {
      // One that does not tell is of an older program, and may.
      let users = nodes.filter { $0.keys.first.map { $0 == name } ?? true }
      guard !users.isEmpty else { return }
      let names = users.map(\.name).joined(separator: ", ")
      throw StartProblem(
        "\(name) stays: \(names) still makes things with it. Bring the key file there, or restart it, then try again.")
    }
    guard !nodes.isEmpty else { return }
    let are = nodes.count == 1 ? "1 gateway serves" : "\(nodes.count) gateways serve"
    throw StartProblem(
      """
      \(name) is the oldest key, by which tries and locks are counted, and \(are) from this store: \(nodes.map(\.name).joined(separator: ", ")). \
      Two that count by different keys would give whoever guesses his tries twice. Stop every gateway (one that was killed counts for \
      \(ServingNode.patience.asWritten) more), run this again, give each the new key file, and start them.
      """)
  }

  /// Tokens of programs are hashed under a key, and move to the current one when they are used: nobody else knows their
  /// secrets.
  private func release(tokensOf name: String, _ opened: OperatorStore, _ ring: KeyRing, _ source: KeySource)
    async throws
  {
    guard let left = try await opened.store.accessTokensByKey()[name], left > 0 else { return }
    let tokens = "\(left) token\(left == 1 ? "" : "s") of programs"
    guard force else {
      throw StartProblem(
        """
        \(name) stays: \(tokens) \(left == 1 ? "is" : "are") hashed under it. Each moves to \(ring.currentName) when it is used; rotate or revoke those \
        that are not (`moongate token list`). When you can wait no longer, --force leaves them behind: they are wrong from then on.
        """)
    }
    source.tell("Left behind: \(tokens), which are wrong from now on. Rotate them to get new ones.")
  }

  private func release(
    _ opened: OperatorStore, _ masters: MasterKeys, _ left: MasterKeys, _ source: KeySource, isComplete: Bool
  ) async throws {
    let ring = KeyRing(masters)
    // Whether counts begin anew with it.
    let isOldest = isComplete && masters.oldest.name == name
    let now = opened.now
    if let heir = opened.heir {
      // Which of them the store has left behind, it does not say itself.
      guard isOldest else {
        throw StartProblem("The store answers to \(heir): `moongate keys retire \(masters.oldest.name)` first.")
      }
      source.tell("Taking \(name) out was interrupted: the store answers to \(heir) already. Going on from there.")
    } else {
      try demandUnused(by: try await opened.store.nodes(at: now), isOldest: isOldest)
    }
    let before = try await KeyCensus(of: opened.store, by: ring)
    let census = try await KeyCensus.move(from: name, in: opened.store, by: ring, dropping: force, at: now)
    let records = { (count: Int) in "\(count) record\(count == 1 ? "" : "s")" }
    let moved = (before.sealed[name] ?? 0) - (census.sealed[name] ?? 0)
    if moved > 0, !force { source.tell("\(records(moved)) moved to \(ring.currentName).") }
    if let hashes = census.hashWords(for: name) {
      throw StartProblem(
        """
        \(name) stays: hashes are still under it (\(hashes)). Each moves to \(ring.currentName) when its owner signs in with it. When you can wait no \
        longer, --force removes them: their owners then sign in by a code and set new ones.
        """)
    }
    try await release(tokensOf: name, opened, ring, source)
    if let left = census.sealed[name], left > 0 {
      throw StartProblem(
        "\(name) stays: \(records(left)) came under it meanwhile. Bring the key file to the gateways that still use it, then try again."
      )
    }
    if let lost = before.hashWords(for: name) { source.tell("Removed with the hashes that were under it: \(lost).") }
    // Again: looking through a million accounts takes minutes, in which a gateway may have started with an old file.
    if opened.heir == nil { try demandUnused(by: try await opened.store.nodes(at: opened.now), isOldest: isOldest) }
    if isOldest, opened.heir == nil {
      let locks = try await opened.desk.locks().count
      switch try await opened.store.replaceFingerprint(
        ring.fingerprint, with: KeyRing(left).fingerprint, at: opened.now)
      {
      case .replaced: break
      case .served(let nodes): try demandUnused(by: nodes, isOldest: true)
      case .notTheirs:
        throw StartProblem("The store answers to neither \(name) nor the key after it: nothing was changed.")
      }
      source.tell(
        """
        \(name) was the oldest key, by which is counted: locks and counts begin anew at the next start (\(locks) lock\(locks == 1 ? "" : "s") \
        end\(locks == 1 ? "s" : "")), devices that were known are new ones, and logs name people by other hashes. Give every gateway the new key file \
        before it starts.
        """)
    }
    try await KeyCensus.moveValues(from: ring, to: KeyRing(left), in: opened.store, at: opened.now)
    source.tell("\(name) is retired. Codes under way that were made with it are refused, \(after(isComplete))")
  }

  private func after(_ isComplete: Bool) -> String {
    if isComplete { return "and devices that carry its mark are new ones." }
    return
      "locks and counts stay, and \(leaked ? "devices that carry its mark are new ones" : "devices that carry its mark are known for a year")."
  }
}
