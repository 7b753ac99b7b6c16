import Foundation
import MoongateCore
import MoongateSDK

/// The dependencies of a loader for program entries.
package struct ProgramLoading: Sendable {
  package let starter: any ProgramStarter
  /// Receives the files that gateway.lua of the most recently read folder names: programs, secrets and others.
  package let watch: @Sendable ([String]) -> Void

  package init(starter: any ProgramStarter, watch: @escaping @Sendable ([String]) -> Void = { _ in }) {
    self.starter = starter
    self.watch = watch
  }
}

/// The programs of one candidate. They are started and introduce themselves; they receive their settings only if the
/// rest of the configuration is valid.
struct CandidatePrograms {
  /// By name. Nil for programs that cannot be used, which are already reported.
  private var programs: [String: (entry: ProgramEntry, program: any CandidateProgram)?] = [:]
  /// The digests of the programs, which are part of the generation's id.
  private(set) var digests: [(name: String, digest: String)] = []

  /// Reads the entries and starts their programs.
  init(_ gateway: LuaNode, reader: ExecReader, catalog: ProviderCatalog, loading: ProgramLoading?, problems: Problems) {
    let entries = reader.entries(gateway, taken: catalog.descriptors.map(\.name))
    var good: [ProgramEntry] = []
    for (name, entry) in entries.sorted(by: { $0.key < $1.key }) {
      programs.updateValue(nil, forKey: name)
      guard let entry else { continue }
      digests.append((name, entry.digest))
      good.append(entry)
    }
    guard let loading else {
      for entry in good { problems.add(entry.location, "providers.\(entry.name)", "programs cannot be started here") }
      return
    }
    for (entry, result) in zip(good, loading.starter.introduce(good)) {
      switch result {
      case .success(let program): programs[entry.name.rawValue] = (entry, program)
      case .failure(let refusal): Self.report(refusal, of: entry, problems)
      }
    }
  }

  private static func report(_ refusal: ProgramRefusal, of entry: ProgramEntry, _ problems: Problems) {
    let file =
      entry.path.hasPrefix(entry.folder + "/") ? "./" + entry.path.dropFirst(entry.folder.count + 1) : entry.path
    for sentence in refusal.sentences {
      problems.add(entry.location, "providers.\(entry.name)", "the program \(file) \(sentence)")
    }
  }

  /// The descriptors of the usable programs.
  var descriptors: [ProviderDescriptor] {
    programs.sorted { $0.key < $1.key }.compactMap { $0.value?.program.descriptor }
  }

  /// Whether gateway.lua has no program entries.
  var isEmpty: Bool { programs.isEmpty }

  /// The names of unusable programs. References to them are not reported again.
  var broken: Set<String> { Set(programs.filter { $0.value == nil }.keys) }

  /// Passes the settings to the programs.
  /// - Returns: nil, with problems, if a program rejects its settings.
  func accept(_ gateway: GatewaySettings, problems: Problems) -> [any Provider]? {
    var providers: [any Provider] = []
    for (_, candidate) in programs.sorted(by: { $0.key < $1.key }) {
      guard let (entry, program) = candidate else { return nil }
      do throws(ProgramRefusal) {
        providers.append(try program.accept(gateway.providers[entry.name] ?? ProviderSettings()))
      } catch {
        Self.report(error, of: entry, problems)
      }
    }
    return problems.all.isEmpty ? providers : nil
  }
}
