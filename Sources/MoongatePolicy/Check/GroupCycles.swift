import MoongateCore
import MoongateSDK

/// Finds groups whose functions need the group itself, by `f.account.groups`.
///
/// First by the text of the functions, then by calling them: for an account in no group, and for one in all groups
/// whose members are listed. A cycle that neither finds is a fault when the group is computed.
struct GroupCycles {
  let groups: [GroupName: GroupDefinition]
  let functions: FunctionTable
  let problems: Problems

  /// A group that a function reads, and where.
  private struct Need {
    let name: String
    let location: SourceLocation
  }

  /// - Parameter names: the names that each file uses.
  func check(_ names: [String: LuaNames]) {
    var needs: [String: [Need]] = [:]
    for (group, definition) in groups {
      guard case .computed(let called) = definition, let function = functions.entries[called]?.function,
        let file = names[function.source]
      else { continue }
      needs[group.rawValue] = Self.needs(of: function, in: file)
    }
    var told: Set<String> = []
    for name in needs.keys.sorted() where !told.contains(name) {
      guard let (path, location) = cycle(from: name, needs) else { continue }
      told.formUnion(path)
      problems.add(location, EntitlementReader.path("groups", name), EntitlementReader.cycle(path))
    }
  }

  /// Calls the functions.
  func check(by evaluator: LuaEvaluator) {
    for (group, definition) in groups.sorted(by: { $0.key < $1.key }) {
      guard case .computed(let function) = definition else { continue }
      for listed in [[], Set(groups.keys)] {
        var account = AccountFacts(exists: true, id: "ac_", age: .seconds(86_400), idle: .zero)
        account.groups.listed = listed
        let facts = Facts(
          now: Timestamp(milliseconds: 0), account: account, client: ClientFacts(address: .unspecified))
        _ = try? evaluator.condition(of: function, given: facts.ofGroups)
        guard let cycle = evaluator.cycle else { continue }
        let location = cycle.location ?? SourceLocation(file: "accounts.lua", line: 0)
        problems.add(location, EntitlementReader.path("groups", group.rawValue), cycle.message)
        return
      }
    }
  }

  /// The groups that a function reads by name.
  private static func needs(of function: LuaFunction, in names: LuaNames) -> [Need] {
    let bodies = names.bodies.indices.filter { names.bodies[$0].line == function.line && names.bodies[$0].isField }
    // Of several functions on one line, it is not known which one this is.
    guard bodies.count == 1 else { return [] }
    let parts = names.parts(given: Set(bodies))
    return names.reads.flatMap { read in
      (parts[read.variable] ?? []).compactMap { part in
        let path = part + read.path
        guard path.count > 2, path.starts(with: ["account", "groups"]) else { return nil }
        return Need(name: path[2], location: SourceLocation(file: function.source, line: read.line))
      }
    }
  }

  /// The shortest way from a group back to itself, and where it begins.
  private func cycle(from name: String, _ needs: [String: [Need]]) -> (path: [String], location: SourceLocation)? {
    var ways = (needs[name] ?? []).map { (path: [name, $0.name], location: $0.location) }
    var seen: Set<String> = []
    while !ways.isEmpty {
      if let found = ways.first(where: { $0.path.last == name }) { return found }
      ways = ways.filter { seen.insert($0.path.last ?? "").inserted }.flatMap { way in
        (needs[way.path.last ?? ""] ?? []).map { (way.path + [$0.name], way.location) }
      }
    }
    return nil
  }
}
