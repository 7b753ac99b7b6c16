import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// A provider whose maintenance runs every ten minutes.
private struct Maintained: FullProvider {
  struct Broken: Error {}

  var name: ProviderName = "toy"
  var body: @Sendable (StepTools) async throws -> Void = { _ in }

  var descriptor: ProviderDescriptor {
    ProviderDescriptor(
      name: name, beginFields: [], submitFields: [InputField(name: "x", kind: .text)], settings: [],
      policy: PolicySource(file: "toy.lua", text: ""),
      identifierKinds: [], maintenanceInterval: .seconds(600))
  }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .ask([InputField(name: "x", kind: .text)], state: [])
  }
  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { .proved(Proof()) }
  func maintain(with tools: StepTools) async throws { try await body(tools) }
}

/// Counts runs, and lets a test wait for them.
private final class Runs: Sendable {
  private let state = Mutex((begun: 0, now: 0, most: 0))
  var begun: Int { state.withLock { $0.begun } }
  var most: Int { state.withLock { $0.most } }
  func begin() {
    state.withLock { state in
      state.begun += 1
      state.now += 1
      state.most = max(state.most, state.now)
    }
  }
  func end() { state.withLock { $0.now -= 1 } }
}

/// A value shared between tasks.
private final class Shared<Value: Sendable>: Sendable {
  private let state: Mutex<Value>
  init(_ value: Value) { state = Mutex(value) }
  var value: Value { state.withLock { $0 } }
  func set(_ value: Value) { state.withLock { $0 = value } }
}

/// Maintenance runs periodically, on one gateway at a time, and is stopped at its time limit.
@Suite struct MaintenanceTests {
  private func node(
    _ bench: EngineTestBench, _ holder: String = "one",
    sleep: @escaping @Sendable (Duration) async -> Void = { _ in await forever() }
  ) -> Maintenance { Maintenance(bench.engine, holder: holder, jitter: { 0.5 }, sleep: sleep) }

  private static func samples(_ bench: EngineTestBench) -> [String] {
    bench.engine.providerMetrics.families[0].samples.map {
      $0.labels.map(\.value).joined(separator: " ") + " \(Int($0.value))"
    }
  }

  @Test func itRunsAtOnceAndThenEveryInterval() async throws {
    let runs = Runs()
    let bench = try await EngineTestBench(others: [Maintained(body: { _ in runs.begin() }), ToyPIN()])
    let node = node(bench)
    await node.step()
    await node.step()
    #expect(runs.begun == 1)
    bench.clock.advance(by: .seconds(599))
    await node.step()
    #expect(runs.begun == 1)
    bench.clock.advance(by: .seconds(1))
    await node.step()
    #expect(runs.begun == 2)
    #expect(Self.samples(bench) == ["toy maintain maintained 2"])
  }

  @Test func jitterMovesTheNextRunByATenth() async throws {
    let runs = Runs()
    let bench = try await EngineTestBench(others: [Maintained(body: { _ in runs.begin() })])
    let node = Maintenance(bench.engine, holder: "one", jitter: { 0 }, sleep: { _ in await forever() })
    await node.step()
    bench.clock.advance(by: .seconds(539))
    await node.step()
    #expect(runs.begun == 1)
    bench.clock.advance(by: .seconds(1))
    await node.step()
    #expect(runs.begun == 2)
  }

  /// Attack on ourselves: two gateways clean up at a vendor at the same moment.
  @Test func maintenanceRunsOnOneNodeAtATime() async throws {
    let runs = Runs()
    let bench = try await EngineTestBench(others: [
      Maintained(body: { _ in
        runs.begin()
        for _ in 0..<50 { await Task.yield() }
        runs.end()
      })
    ])
    let nodes = (0..<5).map { node(bench, "node \($0)") }
    for _ in 0..<4 {
      await withTaskGroup(of: Void.self) { group in for node in nodes { group.addTask { await node.step() } } }
      bench.clock.advance(by: .seconds(700))
    }
    #expect(runs.begun == 4 && runs.most == 1)
  }

  @Test func hangingMaintenanceIsCancelledAndReported() async throws {
    let ended = Shared(false)
    let bench = try await EngineTestBench(others: [
      Maintained(body: { _ in
        while !Task.isCancelled { await Task.yield() }
        ended.set(true)
        throw CancellationError()
      })
    ])
    await node(bench, sleep: { #expect($0 == Maintenance.limit) }).step()
    #expect(bench.log.lines.contains { $0.contains("exceeded its time limit and is cancelled") && $0.contains("toy") })
    #expect(Self.samples(bench) == ["toy maintain fault 1"])
    while !ended.value { await Task.yield() }
  }

  /// Attack on ourselves: a run that ignores its cancellation continues beside the run of another gateway.
  @Test func programThatIgnoresItsStopCannotStore() async throws {
    let (goOn, faults, runs) = (Shared(false), Shared<[KeyValueFault]>([]), Runs())
    let bench = try await EngineTestBench(others: [
      Maintained(body: { tools in
        runs.begin()
        guard runs.begun == 1 else { return try await tools.store.set([2], for: "a", expiresIn: .seconds(60)) }
        while !goOn.value { await Task.yield() }
        do throws(KeyValueFault) {
          try await tools.store.set([1], for: "a", expiresIn: .seconds(60))
        } catch {
          faults.set(faults.value + [error])
        }
      })
    ])
    let first = node(bench, "one", sleep: { _ in })
    await first.step()
    await first.step()
    #expect(runs.begun == 1, "no second one beside it on this gateway")
    let second = node(bench, "two")
    await second.step()
    #expect(runs.begun == 1, "nor on another before the lease has ended")
    bench.clock.advance(by: .seconds(90))
    await first.step()
    await second.step()
    #expect(runs.begun == 2)
    goOn.set(true)
    while faults.value.isEmpty { await Task.yield() }
    #expect(faults.value == [.leaseLost])
    let values = ProviderKeyValues(
      of: "toy", in: bench.store, keys: bench.keys, clock: bench.clock, logger: bench.log.logger)
    #expect(try await values.value(for: "a") == [2])
  }

  @Test func aNodeThatDiesIsReplacedWhenItsLeaseEnds() async throws {
    let runs = Runs()
    let bench = try await EngineTestBench(others: [Maintained(body: { _ in runs.begin() })])
    guard
      case .held = try await bench.store.acquireLease(
        "maintain toy", by: "dead", for: .seconds(90), at: bench.clock.now())
    else {
      Issue.record("not acquired")
      return
    }
    let node = node(bench)
    await node.step()
    bench.clock.advance(by: .milliseconds(89_999))
    await node.step()
    #expect(runs.begun == 0)
    bench.clock.advance(by: .milliseconds(1))
    await node.step()
    #expect(runs.begun == 1)
  }

  @Test func failingMaintenanceIsReportedAndRunsAgain() async throws {
    let runs = Runs()
    let bench = try await EngineTestBench(others: [
      Maintained(body: { _ in
        runs.begin()
        throw Maintained.Broken()
      })
    ])
    let node = node(bench)
    await node.step()
    #expect(bench.log.lines.contains { $0.contains("the maintenance of a provider failed") && $0.contains("Broken") })
    bench.clock.advance(by: .seconds(600))
    await node.step()
    #expect(runs.begun == 2 && Self.samples(bench) == ["toy maintain fault 2"])
  }

  @Test func unconfiguredProvidersAreNotMaintained() async throws {
    let runs = Runs()
    let bench = try await EngineTestBench(others: [Maintained(body: { _ in runs.begin() })]) {
      $0.policies["toy"] = nil
    }
    await node(bench).step()
    #expect(runs.begun == 0)
  }

  @Test func stoppingTheNodeEndsTheRun() async throws {
    let isRunning = Shared(false)
    let bench = try await EngineTestBench(others: [
      Maintained(body: { _ in
        isRunning.set(true)
        while !Task.isCancelled { await Task.yield() }
      })
    ])
    let node = node(bench)
    let step = Task { await node.step() }
    while !isRunning.value { await Task.yield() }
    step.cancel()
    await step.value
    #expect(!bench.log.lines.contains { $0.contains("exceeded its time limit") })
  }
}

/// Runs until it is cancelled.
private func forever() async { while !Task.isCancelled { await Task.yield() } }
