import Foundation
import MoongateCore
import MoongateSDK

/// What a loader needs for entries that are programs.
package struct ProgramLoading: Sendable {
  package let starter: any ProgramStarter
  /// Told which files the entries of the folder that was read last name.
  package let watch: @Sendable ([String]) -> Void

  package init(starter: any ProgramStarter, watch: @escaping @Sendable ([String]) -> Void = { _ in }) {
    self.starter = starter
    self.watch = watch
  }
}

/// The programs of one candidate: started, and asked what they are; they get their settings only where all else is
/// good.
struct CandidatePrograms {
  /// By name; those that cannot be used are nil, and are told of already.
  private var programs: [String: (entry: ProgramEntry, program: any CandidateProgram)?] = [:]
  /// For the generation's name: what runs is part of it.
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
    loading?.watch(reader.lookedFor)
    guard let loading else {
      for entry in good { problems.add(entry.location, "providers.\(entry.name)", "programs cannot be started here") }
      return
    }
    for (entry, result) in zip(good, loading.starter.introduce(good)) {
      switch result {
      case .success(let program): programs[entry.name.rawValue] = (entry, program)
      case .failure(let refusal): Self.tell(refusal, of: entry, problems)
      }
    }
  }

  private static func tell(_ refusal: ProgramRefusal, of entry: ProgramEntry, _ problems: Problems) {
    let file =
      entry.path.hasPrefix(entry.folder + "/") ? "./" + entry.path.dropFirst(entry.folder.count + 1) : entry.path
    for sentence in refusal.sentences {
      problems.add(entry.location, "providers.\(entry.name)", "the program \(file) \(sentence)")
    }
  }

  /// What those that can be used declare.
  var descriptors: [ProviderDescriptor] {
    programs.sorted { $0.key < $1.key }.compactMap { $0.value?.program.descriptor }
  }

  /// Whether gateway.lua names none.
  var isEmpty: Bool { programs.isEmpty }

  /// Those that cannot be used, so that nothing else complains of their absence.
  var broken: Set<String> { Set(programs.filter { $0.value == nil }.keys) }

  /// Gives them their settings.
  /// - Returns: nil, with problems, where one does not take them.
  func accept(_ gateway: GatewaySettings, problems: Problems) -> [any Provider]? {
    var providers: [any Provider] = []
    for (_, candidate) in programs.sorted(by: { $0.key < $1.key }) {
      guard let (entry, program) = candidate else { return nil }
      do throws(ProgramRefusal) {
        providers.append(try program.accept(gateway.providers[entry.name] ?? ProviderSettings()))
      } catch {
        Self.tell(error, of: entry, problems)
      }
    }
    return problems.all.isEmpty ? providers : nil
  }
}
