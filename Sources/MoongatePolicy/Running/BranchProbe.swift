import MoongateCore
import MoongateSDK

/// The branches of all functions of a generation, and the instrumented text of each file.
struct BranchIndex: Sendable {
  /// A branch and its location.
  struct Place: Sendable {
    let location: SourceLocation
    let branch: BranchMap.Branch
  }

  /// By branch number.
  private(set) var places: [Place] = []
  /// By file name.
  private(set) var texts: [String: [UInt8]] = [:]

  init(_ generation: Generation) {
    for file in generation.functions.files.sorted() {
      guard let source = generation.sources[file] else { continue }
      let map = BranchMap(source.bytes, first: places.count)
      // The added calls can exceed a limit of Lua (nesting, registers). Such a file is not instrumented and reports no
      // branches.
      guard (try? LuaState().parse(map.instrumented, name: file)) != nil else { continue }
      texts[file] = map.instrumented
      places += map.branches.map { Place(location: SourceLocation(file: file, line: $0.line), branch: $0) }
    }
  }
}

/// Repeats policy calls on instrumented code to record which branches they take.
/// | Policy functions are pure, so the repeated call takes the same branches as the original call. Its cost does not
/// affect any decision.
final class BranchProbe {
  private let evaluator: LuaEvaluator

  /// - Throws: `PolicyFault` if the instrumented text cannot be loaded.
  init(_ generation: Generation, _ index: BranchIndex) throws(PolicyFault) {
    evaluator = try LuaEvaluator(generation, branches: index)
  }

  /// Calls the function with these facts and records its branches.
  func follow(_ function: FunctionName, _ facts: Facts) { evaluator.run(function, facts) }

  /// By branch number. Bit 0: the condition was true, or the body was entered. Bit 1: the condition was false.
  var sides: [UInt8] { evaluator.sidesTaken }
}
