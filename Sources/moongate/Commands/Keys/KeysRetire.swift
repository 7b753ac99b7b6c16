import ArgumentParser
import MoongateCore
import MoongateProgram
import MoongateStore

/// `moongate keys retire NAME`.
struct RetireKey: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retire", abstract: "Remove a key that is no longer needed.",
    discussion: """
      No gateway may still use the key to create data: every gateway must have the key file from after the rotation. Records that are sealed with the gateway's key alone are \
      moved to the current key. PINs and passwords move when their owners sign in; until then the key cannot be retired. The part of the key that names counters and locks and \
      recognizes devices stays in the key file as a `retired` line, which cannot decrypt anything. --completely removes that line too; no gateway may be running. If \
      the command is interrupted, run it again.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The name of the key, from `moongate keys show`.") var name: String
  @Flag(
    help: "Retire it anyway: remove the PINs and passwords that still depend on it. Their owners must set new ones.")
  var force = false

  @Flag(help: "The key may be compromised: devices that it recognizes become new devices.") var leaked = false
  @Flag(help: "Remove it entirely. If it is the oldest key, locks and counters start again. No gateway may be running.")
  var completely = false

  func run() async throws {
    let source = KeySource(try configuration.generation().gateway.key)
    try await source.change { masters in
      guard let member = masters.members.first(where: { $0.name == name }) else {
        throw StartProblem("There is no key \(name): `moongate keys show` lists the keys.")
      }
      guard let without = masters.without(name) else {
        throw StartProblem("\(name) is the current key. Make another key current first with `moongate keys rotate`.")
      }
      return try await OperatorStore.with(configuration, finishesRetirement: true) { opened in
        // An interrupted complete retirement has already started to remove the key.
        guard !completely, opened.interruptedRetirementKey == nil else {
          try await release(opened, masters, without, source, isComplete: true)
          return without
        }
        guard member.role != .retired else {
          throw StartProblem(
            "\(name) is already retired. It still names counters and devices; to end that, use --completely while no gateway runs."
          )
        }
        let left = masters.retiring(name, recognising: !leaked, at: opened.now) ?? without
        try await release(opened, masters, left, source, isComplete: false)
        return left
      }
    }
  }

  /// Checks that no gateway still creates data with the key, because that data could not be opened later.
  ///
  /// Attack: if some gateways count attempts by one key and others by another, an attacker gets twice as many attempts.
  private func demandUnused(by nodes: [ServingNode], isOldest: Bool) throws(StartProblem) {
    guard isOldest else {
      let users = nodes.filter { $0.keys.first == name }
      guard !users.isEmpty else { return }
      let names = users.map(\.name).joined(separator: ", ")
      throw StartProblem(
        "\(name) was not retired: \(names) still uses it. Copy the key file there or restart the gateway, then try again."
      )
    }
    guard !nodes.isEmpty else { return }
    let are = nodes.count == 1 ? "1 gateway serves" : "\(nodes.count) gateways serve"
    throw StartProblem(
      """
      \(name) is the oldest key, which identifies attempt counters and locks, and \(are) from this store: \(nodes.map(\.name).joined(separator: ", ")). \
      Two gateways that count by different keys would double an attacker's guesses. Stop every gateway (a killed one counts as running for \
      \(ServingNode.livenessTimeout.asWritten) more), run this command again, copy the new key file to each gateway, and start them.
      """)
  }

  /// Checks for access tokens that are hashed with the key. A token moves to the current key when it is used, because
  /// only its owner knows the secret.
  private func release(tokensOf name: String, _ opened: OperatorStore, _ ring: KeyRing, _ source: KeySource)
    async throws
  {
    guard let left = try await opened.store.accessTokensByKey()[name], left > 0 else { return }
    let tokens = "\(left) token\(left == 1 ? "" : "s") of programs"
    guard force else {
      throw StartProblem(
        """
        \(name) was not retired: \(tokens) \(left == 1 ? "is" : "are") hashed with it. Each moves to \(ring.currentName) when it is used. Rotate or revoke the \
        unused ones (`moongate token list`). To retire the key now, use --force: these tokens become invalid.
        """)
    }
    source.printNotice("Invalid from now on: \(tokens). Rotate them to get new ones.")
  }

  private func release(
    _ opened: OperatorStore, _ masters: MasterKeys, _ left: MasterKeys, _ source: KeySource, isComplete: Bool
  ) async throws {
    let ring = KeyRing(masters)
    // Whether counters start again because the oldest key is removed.
    let isOldest = isComplete && masters.oldest.name == name
    let now = opened.now
    if let interruptedRetirementKey = opened.interruptedRetirementKey {
      // The store does not record which key it has already replaced.
      guard isOldest else {
        throw StartProblem(
          "The store belongs to \(interruptedRetirementKey). Run `moongate keys retire \(masters.oldest.name)` first.")
      }
      source.printNotice(
        "Retiring \(name) was interrupted: the store already belongs to \(interruptedRetirementKey). Continuing.")
    } else {
      try demandUnused(by: try await opened.store.nodes(at: now), isOldest: isOldest)
    }
    let before = try await KeyUsage(of: opened.store, by: ring)
    let usage = try await KeyUsage.move(from: name, in: opened.store, by: ring, dropping: force, at: now)
    let records = { (count: Int) in "\(count) record\(count == 1 ? "" : "s")" }
    let moved = (before.sealed[name] ?? 0) - (usage.sealed[name] ?? 0)
    if moved > 0, !force { source.printNotice("\(records(moved)) moved to \(ring.currentName).") }
    if let hashes = usage.hashWords(for: name) {
      throw StartProblem(
        """
        \(name) was not retired: it still protects hashes (\(hashes)). Each moves to \(ring.currentName) when its owner signs in with it. To retire the key \
        now, use --force, which removes them: their owners then sign in with a code and set new ones.
        """)
    }
    try await release(tokensOf: name, opened, ring, source)
    if let left = usage.sealed[name], left > 0 {
      throw StartProblem(
        "\(name) was not retired: \(records(left)) were sealed with it in the meantime. Copy the key file to the gateways that still use it, then try again."
      )
    }
    if let lost = before.hashWords(for: name) { source.printNotice("Removed hashes: \(lost).") }
    // Check again: moving a million accounts takes minutes, and a gateway may have started with an old key file since.
    if opened.interruptedRetirementKey == nil {
      try demandUnused(by: try await opened.store.nodes(at: opened.now), isOldest: isOldest)
    }
    if isOldest, opened.interruptedRetirementKey == nil {
      let locks = try await opened.administration.locks().count
      switch try await opened.store.replaceFingerprint(
        ring.fingerprint, with: KeyRing(left).fingerprint, at: opened.now)
      {
      case .replaced: break
      case .served(let nodes): try demandUnused(by: nodes, isOldest: true)
      case .notTheirs:
        throw StartProblem("The store belongs to neither \(name) nor the key after it. Nothing was changed.")
      }
      source.printNotice(
        """
        \(name) was the oldest key, which identifies counters: locks and counters start again at the next start (\(locks) lock\(locks == 1 ? "" : "s") \
        end\(locks == 1 ? "s" : "")), known devices become new devices, and logs identify users by other hashes. Copy the new key file to every gateway \
        before it starts.
        """)
    }
    try await KeyUsage.moveValues(from: ring, to: KeyRing(left), in: opened.store, at: opened.now)
    source.printNotice("\(name) is retired. Pending codes made with it are refused, \(after(isComplete))")
  }

  private func after(_ isComplete: Bool) -> String {
    if isComplete { return "and devices recognized by it become new devices." }
    return
      "locks and counters stay, and \(leaked ? "devices recognized by it become new devices" : "devices recognized by it stay known for a year")."
  }
}
