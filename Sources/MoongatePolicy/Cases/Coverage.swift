import MoongateCore
import MoongateSDK
import Synchronization

/// The parts of a generation's policies that the cases exercise.
package struct Coverage: Sendable, Encodable {
  /// The coverage of a limit.
  package struct LimitLine: Sendable, Encodable {
    package let provider: String
    package let limit: String
    package let file: String
    package let line: Int
    /// Whether a message or attempt was ever counted by it.
    package let charged: Bool
    /// Whether it ever refused a request or began a lock.
    package let refused: Bool
  }

  /// The coverage of a function.
  package struct FunctionLine: Sendable, Encodable {
    package let function: String
    package let file: String
    package let line: Int
    package let calls: Int
    /// The distinct results, sorted: `allow`, `deny "reason"`, `true`, `5`, `policy_error`.
    package let answers: [String]
  }

  /// The coverage of a branch in a function.
  package struct BranchLine: Sendable, Encodable {
    package let file: String
    package let line: Int
    /// The condition, operand or loop as it is written.
    package let code: String
    /// Whether the condition was ever true, or the body of the loop ever entered.
    package let taken: Bool
    /// Whether the condition was ever false; nil for a loop.
    package let notTaken: Bool?

    enum CodingKeys: String, CodingKey {
      case file, line, code, taken
      case notTaken = "not_taken"
    }

    /// The number of sides that were taken, and of all sides.
    var sides: (taken: Int, all: Int) { ((taken ? 1 : 0) + (notTaken ?? false ? 1 : 0), notTaken == nil ? 1 : 2) }
  }

  package let limits: [LimitLine]
  package let functions: [FunctionLine]
  /// The branches of all functions, by file and line; empty if they were not recorded.
  package let branches: [BranchLine]
}

/// Records coverage while cases run.
final class CoverageRecord: Sendable {
  private struct Key: Hashable {
    let provider: ProviderName
    let limit: String

    init(provider: ProviderName, limit: String) {
      self.provider = provider
      self.limit = limit
    }

    init(_ limit: ResolvedLimit) { self.init(provider: limit.provider, limit: limit.name) }
  }

  private struct State {
    var charged: Set<Key> = []
    var refused: Set<Key> = []
    var calls: [FunctionName: Int] = [:]
    var answers: [FunctionName: Set<String>] = [:]
    var sides: [UInt8] = []
    var clamped: [FunctionName: LuaEvaluator.Clamped] = [:]
  }

  /// Whether the current work was not requested by a case.
  @TaskLocal private static var isUnwatched = false

  /// Runs code that a case did not request, without recording coverage.
  static func unwatched<Result>(_ body: () async throws -> Result) async rethrows -> Result {
    try await $isUnwatched.withValue(true) { try await body() }
  }

  var isWatching: Bool { !Self.isUnwatched }

  /// Nil if branches are not recorded.
  let branches: BranchIndex?

  init(branches: BranchIndex? = nil) { self.branches = branches }

  private let state = Mutex(State())

  func charged(_ limits: [ResolvedLimit]) {
    state.withLock { state in for limit in limits { state.charged.insert(Key(limit)) } }
  }

  func refused(_ limit: ResolvedLimit) { state.withLock { state in _ = state.refused.insert(Key(limit)) } }

  func called(_ function: FunctionName, _ answer: String) {
    state.withLock { state in
      state.calls[function, default: 0] += 1
      state.answers[function, default: []].insert(answer)
    }
  }

  func clamped(_ result: LuaEvaluator.Clamped) {
    state.withLock { state in if state.clamped[result.function] == nil { state.clamped[result.function] = result } }
  }

  /// Results of `vary` outside their bounds, each function once.
  var warnings: [ConfigurationProblem] { state.withLock { $0.clamped.values.map(\.warning) } }

  func covered(_ sides: [UInt8]) {
    state.withLock { state in
      if state.sides.count < sides.count {
        state.sides += [UInt8](repeating: 0, count: sides.count - state.sides.count)
      }
      for (number, side) in sides.enumerated() { state.sides[number] |= side }
    }
  }

  func coverage(of generation: any PolicyGeneration) -> Coverage {
    state.withLock { state in
      let limits = generation.policies.values.sorted { $0.provider < $1.provider }.flatMap { policy in
        policy.limits.map { limit in
          let key = Key(provider: policy.provider, limit: limit.name)
          return Coverage.LimitLine(
            provider: policy.provider.rawValue, limit: limit.name, file: limit.location.file, line: limit.location.line,
            charged: state.charged.contains(key), refused: state.refused.contains(key))
        }
      }
      let entries = (generation as? Generation)?.functions.entries ?? [:]
      let functions = entries.sorted { $0.key.path < $1.key.path }.map { name, entry in
        Coverage.FunctionLine(
          function: name.path, file: entry.function.source, line: entry.function.line, calls: state.calls[name] ?? 0,
          answers: (state.answers[name] ?? []).sorted())
      }
      let branches = (branches?.places ?? []).enumerated().map { number, place in
        let side = number < state.sides.count ? state.sides[number] : 0
        return Coverage.BranchLine(
          file: place.location.file, line: place.location.line, code: place.branch.code, taken: side & 1 != 0,
          notTaken: place.branch.isLoop ? nil : side & 2 != 0)
      }
      return Coverage(
        limits: limits, functions: functions, branches: branches.sorted { ($0.file, $0.line) < ($1.file, $1.line) })
    }
  }
}
