import MoongateCore
import MoongateSDK

/// Runs cases on the real engine, each with an empty store and a virtual clock.
package struct CaseRunner: Sendable {
  private let generation: any PolicyGeneration
  private let providers: ProviderRegistry
  private let makeStore: @Sendable () throws -> any Store

  /// - Parameter makeStore: returns a new empty store for exclusive use.
  package init(
    _ generation: any PolicyGeneration, providers: ProviderRegistry,
    makeStore: @escaping @Sendable () throws -> any Store
  ) {
    self.generation = generation
    self.providers = generation.registry ?? providers
    self.makeStore = makeStore
  }

  /// - Parameters:
  /// - timeLimit: the limit on real time for all cases; nil: unlimited.
  /// - watchesBranches: whether to record branches. Each function is then called twice.
  /// - Throws: if a store cannot be created or fails. This says nothing about the cases.
  package func run(_ cases: [PolicyCase], timeLimit: Duration? = nil, watchesBranches: Bool = false) async throws
    -> CaseReport
  {
    let end = timeLimit.map { ContinuousClock.now + $0 }
    let record = CoverageRecord(branches: watchesBranches ? (generation as? Generation).map(BranchIndex.init) : nil)
    let observed = RecordingGeneration(base: generation, record: record)
    var outcomes: [CaseOutcome] = []
    for one in cases {
      let gateway = try VirtualGateway(
        observed, providers: providers, store: RecordingStore(base: try makeStore(), record: record))
      var run = CaseRun(one, gateway: gateway, providers: providers, end: end)
      guard let outcome = try await run.play() else {
        return CaseReport(
          outcomes: outcomes, unreached: one, coverage: record.coverage(of: generation), warnings: record.warnings)
      }
      outcomes.append(outcome)
      try await gateway.audit.flush()
    }
    return CaseReport(
      outcomes: outcomes, unreached: nil, coverage: record.coverage(of: generation), warnings: record.warnings)
  }
}
