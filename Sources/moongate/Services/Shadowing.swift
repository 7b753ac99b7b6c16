import Logging
import MoongateCore
import MoongatePolicy
import MoongateProgram

/// Dependencies for evaluating a candidate in shadow mode.
struct Shadowing: Sendable {
  let shadow: PolicyShadow
  let providers: ProviderRegistry
  let programs: ProviderProcessManager
  let listenAddresses: ListenAddresses

  /// The candidate folder. Relative paths in its files are relative to the active folder, so that the same files give
  /// the same generation, key and store after a promotion.
  func folder(_ path: String, beside served: ConfigurationFolder) -> ConfigurationFolder {
    ConfigurationFolder(
      path: path, base: served.path, providers: providers, programs: programs.unwatchedLoading(),
      listenAddresses: listenAddresses)
  }
}

/// A configuration that was promoted from another folder.
struct Promotion: Sendable {
  /// The ids of the generations that the active folder had at that time. They do not count as a change.
  let replaced: Set<String>
}

extension ConfigurationReload {
  /// Loads a candidate with all checks of a reload except the gate, and evaluates it in shadow mode. The active
  /// generation does not change.
  /// - Returns: nil on success; otherwise the reason for the refusal.
  func beginShadow(of path: String, by name: String?) async -> RefusedConfiguration? {
    await inTurn { await self.loadShadow(path, by: name) }
  }

  private func loadShadow(_ path: String, by name: String?) async -> RefusedConfiguration? {
    guard let shadowing else { return nil }
    let generation: any PolicyGeneration
    let canonicalPath: String
    switch await candidate(path, shadowing) {
    case .success(let found): (generation, canonicalPath) = found
    case .failure(let refused): return refused
    }
    guard generation.id != generations.current.id else {
      return Self.refusal(path, "is the same as the active configuration: there is nothing to compare")
    }
    watching?.cancel()
    shadowing.shadow.begin(generation, folder: canonicalPath, by: name, at: clock.now())
    watching = Task { [shadow = shadowing.shadow] in await DedicatedThread.run(at: .lowPriority) { await shadow.work() }
    }
    logger.notice("generation \(generation.id.prefix(8)) is the candidate", metadata: ["folder": "\(canonicalPath)"])
    return nil
  }

  /// Makes the candidate the active generation. Its folder must not have changed since it was loaded, and must pass all
  /// checks of a reload and the gate.
  /// - Returns: nil if it is active; otherwise the reason for the refusal. The candidate then stays in shadow mode.
  func promote(isForced: Bool) async -> RefusedConfiguration? { await inTurn { await self.promoteShadow(isForced) } }

  private func promoteShadow(_ isForced: Bool) async -> RefusedConfiguration? {
    guard let shadowing, let watched = shadowing.shadow.status else { return Self.refusal("", "there is no candidate") }
    let generation: any PolicyGeneration
    switch await candidate(watched.folder, shadowing) {
    case .success(let found): generation = found.generation
    case .failure(let refused): return refused
    }
    // Attack: a user with write access changes the folder after an operator has reviewed its effect.
    guard generation.id == watched.candidate.id else {
      return Self.refusal(
        watched.folder, "has changed since it was loaded: load it again with `moongate policy shadow`, then promote it")
    }
    let replaced = Set([generations.current.id, generations.status.refused?.id].compactMap(\.self))
    let isServed = watched.folder == CandidateFolder.canonicalPath(folder.path)
    let reminder = ConfigurationProblem(
      location: SourceLocation(file: watched.folder, line: 0), path: "",
      message:
        "was promoted: copy its files to \(folder.path) before the next start, or the gateway starts with the old files there"
    )
    if let refused = await activate(generation, isForced, more: isServed ? [] : [reminder]) { return refused }
    promotion = isServed ? nil : Promotion(replaced: replaced.union(promotion?.replaced ?? []))
    shadowing.shadow.end()
    return nil
  }

  /// Loads a candidate folder if the gateway may trust it.
  private func candidate(
    _ path: String, _ shadowing: Shadowing
  ) async -> Result<(generation: any PolicyGeneration, path: String), RefusedConfiguration> {
    let canonicalPath: String
    do throws(CandidateFolder.Problem) {
      canonicalPath = try CandidateFolder.trusted(path, as: folder.path)
    } catch {
      return .failure(Self.refusal(error.place, error.sentence))
    }
    let loaded = await shadowing.folder(canonicalPath, beside: folder).load()
    // A candidate in shadow mode sends no calls to programs.
    programs?.keep(only: generations.current)
    return loaded.map { ($0, canonicalPath) }
  }

  private static func refusal(_ file: String, _ message: String) -> RefusedConfiguration {
    let problem = ConfigurationProblem(location: SourceLocation(file: file, line: 0), path: "", message: message)
    return RefusedConfiguration(id: nil, problems: [problem], isFolderMissing: false)
  }
}
