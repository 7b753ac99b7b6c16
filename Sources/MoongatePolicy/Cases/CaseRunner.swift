import MoongateCore
import MoongateSDK

/// Runs cases on the real engine, each from an empty store, on a virtual clock.
package struct CaseRunner: Sendable {
  private let generation: any PolicyGeneration
  private let providers: ProviderRegistry
  private let makeStore: @Sendable () throws -> any Store

  /// - Parameter makeStore: gives an empty store of a case's own at each call.
  package init(
    _ generation: any PolicyGeneration, providers: ProviderRegistry,
    makeStore: @escaping @Sendable () throws -> any Store
  ) {
    self.generation = generation
    self.providers = generation.registry ?? providers
    self.makeStore = makeStore
  }

  /// - Parameters:
  ///   - patience: how long all of them may take in real time; nil: as long as they take.
  ///   - watchesBranches: whether it is noted which way functions go: each is then called twice.
  /// - Throws: where a store cannot be made or does not answer: that says nothing about the cases.
  package func run(_ cases: [PolicyCase], patience: Duration? = nil, watchesBranches: Bool = false) async throws
    -> CaseReport
  {
    let end = patience.map { ContinuousClock.now + $0 }
    let record = CoverageRecord(branches: watchesBranches ? (generation as? Generation).map(BranchIndex.init) : nil)
    let observed = ObservedGeneration(observed: generation, record: record)
    var outcomes: [CaseOutcome] = []
    for one in cases {
      let gateway = try VirtualGateway(
        observed, providers: providers, store: ObservedStore(observed: try makeStore(), record: record))
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
