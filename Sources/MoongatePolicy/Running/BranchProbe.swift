import CLua
import MoongateCore
import MoongateSDK

/// The branches of all functions of a generation, and their files' texts with a call at each.
struct BranchIndex: Sendable {
  /// A branch, where it stands.
  struct Place: Sendable {
    let location: SourceLocation
    let branch: BranchMap.Branch
  }

  /// By their numbers.
  private(set) var places: [Place] = []
  /// By file.
  private(set) var texts: [String: [UInt8]] = [:]

  init(_ generation: Generation) {
    for file in generation.functions.files.sorted() {
      guard let source = generation.sources[file] else { continue }
      let map = BranchMap(source.bytes, first: places.count)
      // The added calls may be what is too much (nesting, registers): such a file is left as it is, and has no
      // branches.
      guard (try? LuaState().parse(map.instrumented, name: file)) != nil else { continue }
      texts[file] = map.instrumented
      places += map.branches.map { Place(location: SourceLocation(file: file, line: $0.line), branch: $0) }
    }
  }
}

/// Calls functions a second time, in a copy of their text that notes its branches. They are pure, so it takes the same
/// way as the call that was answered; what it costs decides nothing.
final class BranchProbe {
  private let evaluator: LuaEvaluator

  /// - Throws: `PolicyFault` where the text cannot be loaded.
  init(_ generation: Generation, _ index: BranchIndex) throws(PolicyFault) {
    evaluator = try LuaEvaluator(generation, branches: index)
  }

  /// Goes the way that the function goes with these facts.
  func follow(_ function: FunctionName, _ facts: Facts) { evaluator.run(function, facts) }

  /// By their numbers: bit 0 where a condition was true or a body was entered, bit 1 where a condition was not.
  var sides: [UInt8] { evaluator.sidesTaken }
}
