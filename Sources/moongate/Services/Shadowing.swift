import Logging
import MoongateCore
import MoongatePolicy

/// What is needed to let a candidate look on.
struct Shadowing: Sendable {
  let shadow: PolicyShadow
  let providers: ProviderRegistry
  let programs: ProviderProcessManager
  let places: Gateway.Places

  /// The candidate's folder. Relative paths in its files count from the folder that is served, where they are to lie
  /// one day: the same files make the same generation, with the same key and the same store.
  func folder(_ path: String, beside served: ConfigurationFolder) -> ConfigurationFolder {
    ConfigurationFolder(
      path: path, base: served.path, providers: providers, programs: programs.lookingOn(), places: places)
  }
}

/// A configuration that was made active from a folder of its own.
struct Promotion: Sendable {
  /// What the served folder held then: it is not taken for news.
  let replaced: Set<String>
}

extension ConfigurationReload {
  /// Loads a candidate, by all the checks of a reload but the gate, and lets it look on. The active generation is not
  /// touched.
  /// - Returns: nil where it looks on; else why not.
  func beginShadow(of path: String, by name: String?) async -> RefusedConfiguration? {
    await inTurn { await self.loadShadow(path, by: name) }
  }

  private func loadShadow(_ path: String, by name: String?) async -> RefusedConfiguration? {
    guard let shadowing else { return nil }
    let generation: any PolicyGeneration
    let real: String
    switch await candidate(path, shadowing) {
    case .success(let found): (generation, real) = found
    case .failure(let refused): return refused
    }
    guard generation.id != generations.current.id else {
      return Self.refusal(path, "holds what is active: there is nothing to compare")
    }
    watching?.cancel()
    shadowing.shadow.begin(generation, folder: real, by: name, at: clock.now())
    watching = Task { [shadow = shadowing.shadow] in await DedicatedThread.run(at: .quiet) { await shadow.work() } }
    logger.notice("generation \(generation.id.prefix(8)) looks on", metadata: ["folder": "\(real)"])
    return nil
  }

  /// Makes the candidate that looks on the active generation: what its folder holds now must be what was watched, and
  /// it goes through all checks of a reload again, and through the gate.
  /// - Returns: nil where it is active; else why not. It looks on until it is.
  func promote(isForced: Bool) async -> RefusedConfiguration? { await inTurn { await self.promoteShadow(isForced) } }

  private func promoteShadow(_ isForced: Bool) async -> RefusedConfiguration? {
    guard let shadowing, let watched = shadowing.shadow.status else { return Self.refusal("", "no candidate looks on") }
    let generation: any PolicyGeneration
    switch await candidate(watched.folder, shadowing) {
    case .success(let found): generation = found.generation
    case .failure(let refused): return refused
    }
    // Attack: whoever may write to the folder changes it after somebody has looked at what it would do.
    guard generation.id == watched.candidate.id else {
      return Self.refusal(
        watched.folder, "has changed since it began to look on: let it look on again, and then promote it")
    }
    let replaced = Set([generations.current.id, generations.status.refused?.id].compactMap(\.self))
    let isServed = watched.folder == CandidateFolder.real(folder.path)
    let reminder = ConfigurationProblem(
      location: SourceLocation(file: watched.folder, line: 0), path: "",
      message:
        "was promoted: copy its files to \(folder.path) before the gateway is started again, or it starts with those that lie there"
    )
    if let refused = await activate(generation, isForced, more: isServed ? [] : [reminder]) { return refused }
    promotion = isServed ? nil : Promotion(replaced: replaced.union(promotion?.replaced ?? []))
    shadowing.shadow.end()
    return nil
  }

  /// Reads a candidate's folder that the gateway may trust.
  private func candidate(
    _ path: String, _ shadowing: Shadowing
  ) async -> Result<(generation: any PolicyGeneration, path: String), RefusedConfiguration> {
    let real: String
    do throws(CandidateFolder.Problem) {
      real = try CandidateFolder.trusted(path, as: folder.path)
    } catch {
      return .failure(Self.refusal(error.place, error.sentence))
    }
    let loaded = await shadowing.folder(real, beside: folder).load()
    // Nothing that looks on asks a program for anything.
    programs?.keep(only: generations.current)
    return loaded.map { ($0, real) }
  }

  private static func refusal(_ file: String, _ message: String) -> RefusedConfiguration {
    let problem = ConfigurationProblem(location: SourceLocation(file: file, line: 0), path: "", message: message)
    return RefusedConfiguration(id: nil, problems: [problem], isFolderMissing: false)
  }
}
