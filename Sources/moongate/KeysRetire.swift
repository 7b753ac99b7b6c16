import ArgumentParser
import MoongateCore
import MoongateStore

/// `moongate keys retire NAME`.
struct RetireKey: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retire", abstract: "Take a key out of the ring, once nothing needs it any more.",
    discussion: """
      Restart every gateway after the rotation first: one that still makes things with the key would make them for nothing. Records that only the \
      gateway's own keys close are moved to the current key; PINs and passwords move when their owners sign in, and until then the key stays.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The key, as `moongate keys show` names it.") var name: String
  @Flag(help: "Take it even so: PINs and passwords that are still under it are removed, and their owners set new ones.") var force = false

  func run() async throws {
    let source = KeySource(try configuration.generation().gateway.key)
    try await source.change { masters in
      guard masters.members.contains(where: { $0.name == name }) else {
        throw StartProblem("There is no key \(name): `moongate keys show` lists those that there are.")
      }
      guard let left = masters.without(name) else {
        throw StartProblem("\(name) is the current key: `moongate keys rotate` first, then restart the gateway.")
      }
      try await open(masters, left) { opened, isOurs in
        try await release(opened, masters, left, isReplaced: !isOurs, source)
      }
      return left
    }
  }

  /// Opens the store by the ring as it is; or as it will be, where a retirement was interrupted after it had taken the store that far.
  private func open(
    _ masters: MasterKeys, _ left: MasterKeys, _ body: (OperatorStore, _ isOurs: Bool) async throws -> Void
  ) async throws {
    let ring = KeyRing(masters)
    let next = KeyRing(left)
    guard ring.fingerprint != next.fingerprint else { return try await OperatorStore.with(configuration) { try await body($0, true) } }
    let replaced: OperatorStore
    do {
      replaced = try await OperatorStore(configuration, answeringTo: next)
    } catch {
      return try await OperatorStore.with(configuration) { try await body($0, true) }
    }
    defer { replaced.close() }
    try await body(replaced, false)
  }

  private func release(
    _ opened: OperatorStore, _ masters: MasterKeys, _ left: MasterKeys, isReplaced: Bool, _ source: KeySource
  ) async throws {
    let ring = KeyRing(masters)
    let now = opened.now
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
    if let left = census.sealed[name], left > 0 {
      throw StartProblem("\(name) stays: \(records(left)) came under it meanwhile. Restart the gateways that still use it, then try again.")
    }
    if let lost = before.hashWords(for: name) { source.tell("Removed with the hashes that were under it: \(lost).") }
    if masters.oldest.name == name {
      let locks = try await opened.desk.locks().count
      guard try await opened.store.replaceFingerprint(ring.fingerprint, with: KeyRing(left).fingerprint) || isReplaced else {
        throw StartProblem("The store answers to neither \(name) nor the key after it: nothing was changed.")
      }
      source.tell(
        """
        \(name) was the oldest key, by which is counted: locks and counts begin anew at the next start (\(locks) lock\(locks == 1 ? "" : "s") \
        end\(locks == 1 ? "s" : "")), devices that were known are new ones, and logs name people by other hashes. Restart every gateway now.
        """)
    }
    source.tell("\(name) is retired. Codes under way that were made with it are refused, and devices that carry its mark are new ones.")
  }
}
