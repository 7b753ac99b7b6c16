import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import PIN
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
    #expect(report.text(colour: false) == "\(report.decisions) decisions about 8 people: none differs.")
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
    let traffic = try Traffic(recorded: Data(events.utf8), of: PhoneOTP().descriptor)
    #expect(traffic.acts.map(\.kind) == [.send, .wrong, .wrong, .wrong, .right])
    let report = try await diff(generation(max: 5), generation(max: 2), traffic)
    #expect(
      report.text(colour: false) == """
        5 decisions about 1 person: 3 differ.
        ████████████░░░░░░░░  60 %

            count  act    was → is                          by
                2  wrong  invalid_code → too_many_attempts  policies/test.lua:1
                1  right  ok → too_many_attempts            policies/test.lua:1
        """, "\(report.text(colour: false))")
    #expect(report.text(colour: true).contains("\u{1b}[31mtoo_many_attempts"))
    #expect(report.flips.map(\.first) == [2, 4])
  }

  @Test func whatWasRefusedIsPlayedToo() throws {
    let events = """
      [{"at":"2026-11-20T12:00:09Z","kind":"refused","code":"not_here","identifier":"b","detail":{"act":"submit"}},
       {"at":"2026-11-20T12:00:03Z","kind":"refused","code":"rate_limited","identifier":"b","detail":{"act":"send"}},
       {"at":"2026-11-20T12:00:02Z","kind":"refused","code":"account_not_found","identifier":"a","detail":{"act":"send"}},
       {"at":"2026-11-20T12:00:01Z","kind":"refused","code":"invalid_code","identifier":"c","provider":"pin"},
       {"at":"2026-11-20T12:00:00Z","kind":"refused","code":"no_route"}]
      """
    let traffic = try Traffic(recorded: Data(events.utf8), of: PhoneOTP().descriptor)
    #expect(traffic.acts.map(\.kind) == [.send, .send, .right])
    #expect(traffic.people == 2 && traffic.strangers == [0])
  }

  /// What happened within one second is played as it happened: whoever signs in twice does not do both at once.
  @Test func millisecondsTellTheOrder() throws {
    let events = """
      [{"at":"2026-11-20T12:00:00.900Z","kind":"code_verified","identifier":"a"},
       {"at":"2026-11-20T12:00:00.700Z","kind":"code_sent","identifier":"a"},
       {"at":"2026-11-20T12:00:00.350Z","kind":"code_verified","identifier":"a"},
       {"at":"2026-11-20T12:00:00.050Z","kind":"code_sent","identifier":"a"}]
      """
    let traffic = try Traffic(recorded: Data(events.utf8), of: PhoneOTP().descriptor)
    #expect(traffic.acts.map(\.kind) == [.send, .right, .send, .right])
    #expect(traffic.acts.map { $0.at.milliseconds % 1000 } == [50, 350, 700, 900])
  }

  /// A PIN's try names nobody and asks for nothing to be sent: it is begun where it is typed.
  @Test func aLogOfSecretsIsPlayedAgain() async throws {
    let wrong = (1...4).map {
      #"{"at":"2026-11-20T12:00:0\#($0).000Z","kind":"refused","code":"invalid_pin","provider":"pin","account":"ac_1"}"#
    }
    let events = wrong.joined(separator: "\n") + "\n" + #"{"at":"2026-11-20T12:00:09.000Z","kind":"code_verified","provider":"pin","account":"ac_1"}"#
    let pin = ProviderName(test: "pin")
    let traffic = try Traffic(recorded: Data(events.utf8), of: PIN().descriptor)
    #expect(traffic.acts.map(\.kind) == [.wrong, .wrong, .wrong, .wrong, .right] && traffic.people == 1)
    let generation = { (max: Int) in
      TestGeneration(
        gateway: .test(providers: [pin: ProviderSettings()]), flows: [.test("pin_unlock", account: .existing, steps: [.test(pin)])],
        policies: [.test(pin, limits: [.test("verify", on: .verify, per: .account, max: max, window: .seconds(86_400), lock: [.seconds(900)])])])
    }
    let report = try await PolicyDiff(
      old: generation(5), new: generation(3), provider: pin, traffic: traffic, providers: ProviderRegistry(ShippedProviders.all)
    ) { try SQLiteStore.memory() }
    let flips = report.flips.map { "\($0.count) \($0.act): \($0.old), \($0.new)" }
    #expect(flips == ["2 wrong: invalid_pin, too_many_attempts", "1 right: ok, too_many_attempts"], "\(report.text(colour: false))")
  }

  /// A week of a town against a stricter lock: what an operator sees at 80 columns.
  @Test func aWeekOfATown() async throws {
    let report = try await diff(generation(max: 5), generation(max: 3), Traffic(seed: 1, people: 10, days: 2))
    let text = report.text(colour: false)
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(text)")
    #expect(report.flips.contains { $0.act == "wrong" && $0.old == "invalid_code" && $0.new == "too_many_attempts" }, "\(text)")
    #expect(report.flips.allSatisfy { $0.rule != nil }, "\(text)")
  }

  @Test func aLogThatIsNoneNamesItsLine() {
    #expect(throws: TrafficProblem.self) { try Traffic(recorded: Data("{}\nnot json\n".utf8), of: PhoneOTP().descriptor) }
    #expect(
      performing: { try Traffic(recorded: Data("{}\nnot json\n".utf8), of: PhoneOTP().descriptor) }, throws: { ($0 as? TrafficProblem)?.line == 2 })
  }
}
