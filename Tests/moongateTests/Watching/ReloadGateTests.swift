import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateGateway

/// A reload that would change too many recorded decisions is refused.
@Suite struct ReloadGateTests {
  private static let phone = ProviderName(test: "phone_otp")

  private func generation(
    max: Int, gate: GateSettings?, policies: Bool = true, id: String = "test"
  ) -> TestGeneration {
    var settings = GatewaySettings.test(providers: [Self.phone: ProviderSettings(deliveries: ["sms": .outbox])])
    settings.gate = gate
    settings.locations["gate"] = SourceLocation(file: "gateway.lua", line: 9)
    return TestGeneration(
      id: id, gateway: settings, flows: [.test("login", account: .existing, steps: [.test(Self.phone)])],
      policies: policies
        ? [
          .test(
            Self.phone, code: CodeRule(length: 6, alphabet: .digits, lifetime: .seconds(600)),
            limits: [
              .test("verify", on: .verify, per: .phone, max: max, window: .seconds(86_400), lock: [.seconds(900)])
            ])
        ] : [])
  }

  /// A trail in which users make this many mistakes before each sign-in.
  private func gate(
    wrong: [Int], timeLimit: Duration = ReloadGate.timeLimit,
    makeStore: @escaping @Sendable () throws -> any Store = TemporaryStore.make
  ) async throws -> ReloadGate {
    let clock = ManualClock()
    let store = try TemporaryStore.make()
    var events: [AuditEvent] = []
    let random = SeededRandom(seed: 7)
    var at = clock.now() - .seconds(3600)
    for (person, mistakes) in wrong.enumerated() {
      let tries: [(AuditEvent.Kind, String?)] =
        [(.codeSent, nil)] + Array(repeating: (.refused, "invalid_code"), count: mistakes) + [(.codeVerified, nil)]
      for (kind, code) in tries {
        at = at + .seconds(5)
        events.append(
          AuditEvent(
            id: DecisionID(from: random), at: at, kind: kind, provider: Self.phone, identifier: "h\(person)",
            address: "192.0.2.1", code: code))
      }
    }
    try await store.append(events)
    let audit = AuditTrail(store: store, logger: CapturedLog().logger)
    return ReloadGate(
      store: store, audit: audit, providers: try Providers.registry(), clock: clock, timeLimit: timeLimit,
      makeStore: makeStore)
  }

  private func shut(_ answer: ReloadGate.Answer) -> String? {
    if case .shut(let problem) = answer { problem.description } else { nil }
  }

  @Test func smallChangeIsLoaded() async throws {
    let gate = try await gate(wrong: [0, 0, 1, 0])
    let active = generation(max: 5, gate: GateSettings(mostFlips: 0), id: "active")
    #expect(
      await gate.answer(to: generation(max: 3, gate: nil), in: active, isForced: false)
        == .open(note: "0 of 9 decisions recorded in the last 24h change (0 %)"))
    #expect(
      await gate.answer(
        to: generation(max: 3, gate: nil), in: generation(max: 5, gate: nil, id: "active"), isForced: false)
        == .open(note: nil))
  }

  @Test func sameGenerationIsNotReplayed() async throws {
    struct NoMemory: Error {}
    let gate = try await gate(wrong: [4]) { throw NoMemory() }
    let active = generation(max: 5, gate: GateSettings(mostFlips: 0))
    #expect(await gate.answer(to: active, in: active, isForced: false) == .open(note: nil))
  }

  /// Attack: a candidate that locks users out removes the gate in the same change.
  @Test func largeChangeIsRefusedEvenIfTheCandidateRemovesTheGate() async throws {
    let gate = try await gate(wrong: [4, 0])
    let active = generation(max: 5, gate: GateSettings(mostFlips: 0.005), id: "active")
    let sentence = try #require(shut(await gate.answer(to: generation(max: 2, gate: nil), in: active, isForced: false)))
    #expect(
      sentence.hasPrefix(
        "gateway.lua:9: gate: 4 of 8 decisions recorded in the last 24h would change (50 %), and `most_flips` allows 0.5 %: "
      ),
      "\(sentence)")
    #expect(sentence.contains("phone_otp wrong: invalid_code → too_many_attempts (policies/test.lua:1)"), "\(sentence)")
    #expect(
      sentence.contains(#"flips_accepted = "test""#) && sentence.hasSuffix("or `moongate reload --force`"),
      "\(sentence)")
    let unmatched = GateSettings(mostFlips: 1, accepted: "0123456789abcdef")
    #expect(
      shut(await gate.answer(to: generation(max: 2, gate: unmatched), in: active, isForced: false))?.contains(
        "names another change") == true)
  }

  @Test func acceptedOrForcedChangeIsLoaded() async throws {
    let gate = try await gate(wrong: [4])
    let active = generation(max: 5, gate: GateSettings(), id: "active")
    let accepting = generation(max: 2, gate: GateSettings(accepted: "te"))
    #expect(
      await gate.answer(to: accepting, in: active, isForced: false) == .open(note: "flips_accepted names this change"))
    #expect(
      await gate.answer(to: generation(max: 2, gate: nil), in: active, isForced: true)
        == .open(note: "skipped by --force"))
  }

  @Test func removedProviderChangesAllItsDecisions() async throws {
    let gate = try await gate(wrong: [0, 0])
    let answer = await gate.answer(
      to: generation(max: 5, gate: nil, policies: false),
      in: generation(max: 5, gate: GateSettings(mostFlips: 0.5), id: "active"), isForced: false)
    #expect(
      shut(answer)?.contains("4 of 4 decisions") == true && shut(answer)?.contains("no such provider") == true,
      "\(answer)")
  }

  @Test func emptyLogHasNoDifferences() async throws {
    let answer = await (try await gate(wrong: [])).answer(
      to: generation(max: 1, gate: nil),
      in: generation(max: 5, gate: GateSettings(replay: .seconds(600)), id: "active"), isForced: false)
    #expect(answer == .open(note: "no replayable decision was recorded in the last 10m, so nothing was compared"))
  }

  @Test func failedOrSlowReplayClosesTheGate() async throws {
    struct NoMemory: Error {}
    let active = generation(max: 5, gate: GateSettings(), id: "active")
    let broken = try await gate(wrong: [0]) { throw NoMemory() }
    #expect(
      shut(await broken.answer(to: generation(max: 5, gate: nil), in: active, isForced: false))?.contains(
        "could not be replayed: NoMemory()")
        == true)
    let slow = try await gate(wrong: Array(repeating: 3, count: 200), timeLimit: .zero)
    let told = shut(await slow.answer(to: generation(max: 5, gate: nil), in: active, isForced: false))
    #expect(
      told?.contains("could not be replayed within 0s: shorten `replay`; or `moongate reload --force`") == true,
      "\(told ?? "")")
  }
}
