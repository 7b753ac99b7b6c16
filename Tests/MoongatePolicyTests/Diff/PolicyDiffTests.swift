import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import PhoneOTP
import Testing

@testable import MoongatePolicy

/// What a change of the files would change for people.
@Suite struct PolicyDiffTests {
  private static let phone = ProviderName(test: "phone_otp")

  private func generation(max: Int, code: Int = 6) -> TestGeneration {
    TestGeneration(
      gateway: .test(providers: [Self.phone: ProviderSettings(deliveries: ["sms": .outbox])]),
      flows: [.test("login", account: .existing, steps: [.test(Self.phone)])],
      policies: [
        .test(
          Self.phone, code: CodeRule(length: code, alphabet: .digits, lifetime: .seconds(600)),
          limits: [.test("verify", on: .verify, per: .phone, max: max, window: .seconds(86_400), lock: [.seconds(900)])])
      ])
  }

  private func diff(_ old: TestGeneration, _ new: TestGeneration, _ traffic: Traffic) async throws -> PolicyDiff {
    try await PolicyDiff(old: old, new: new, provider: Self.phone, traffic: traffic, providers: ProviderRegistry([PhoneOTP()])) {
      try SQLiteStore(path: ":memory:", keyFingerprint: [1])
    }
  }

  @Test func nothingDiffersFromItself() async throws {
    let report = try await diff(generation(max: 5), generation(max: 5), Traffic(seed: 3, people: 8, days: 1))
    #expect(report.flips.isEmpty)
    #expect(report.text == "\(report.decisions) decisions about 8 people: none differs.")
  }

  @Test func aLogIsPlayedAgainWithCountersOfItsOwn() async throws {
    let events = """
      {"at":"2026-11-20T12:00:00Z","kind":"code_sent","identifier":"a","address":"192.0.2.1"}
      {"at":"2026-11-20T12:00:01Z","kind":"refused","code":"invalid_code","identifier":"a","address":"192.0.2.1"}
      {"at":"2026-11-20T12:00:02Z","kind":"refused","code":"invalid_code","identifier":"a","address":"192.0.2.1"}
      {"at":"2026-11-20T12:00:03Z","kind":"refused","code":"invalid_code","identifier":"a","address":"192.0.2.1"}
      {"at":"2026-11-20T12:00:04Z","kind":"code_verified","identifier":"a","address":"192.0.2.1"}
      {"at":"2026-11-20T12:00:05Z","kind":"generation_active"}
      """
    let traffic = try Traffic(recorded: Data(events.utf8))
    #expect(traffic.acts.map(\.kind) == [.send, .wrong, .wrong, .wrong, .right])
    let report = try await diff(generation(max: 5), generation(max: 2), traffic)
    #expect(
      report.text == """
        5 decisions about 1 people: 3 differ.

                2  wrong invalid_code → too_many_attempts
                1  right ok → too_many_attempts
        """)
    #expect(report.flips.map(\.first) == [2, 4])
  }

  @Test func aLogThatIsNoneNamesItsLine() {
    #expect(throws: TrafficProblem.self) { try Traffic(recorded: Data("{}\nnot json\n".utf8)) }
    #expect(performing: { try Traffic(recorded: Data("{}\nnot json\n".utf8)) }, throws: { ($0 as? TrafficProblem)?.line == 2 })
  }
}
