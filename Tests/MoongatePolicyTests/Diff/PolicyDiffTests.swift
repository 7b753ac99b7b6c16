import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import PIN
import PhoneOTP
import Testing

@testable import MoongatePolicy

/// The effects of changed files on users.
@Suite struct PolicyDiffTests {
  private static let phone = ProviderName(test: "phone_otp")

  private func generation(max: Int, code: Int = 6) -> TestGeneration {
    TestGeneration(
      gateway: .test(providers: [Self.phone: ProviderSettings(deliveries: ["sms": .outbox])]),
      flows: [.test("login", account: .existing, steps: [.test(Self.phone)])],
      policies: [
        .test(
          Self.phone, code: CodeRule(length: code, alphabet: .digits, lifetime: .seconds(600)),
          limits: [.test("verify", on: .verify, per: .phone, max: max, window: .seconds(86_400), lock: [.seconds(900)])]
        )
      ])
  }

  private func diff(_ old: TestGeneration, _ new: TestGeneration, _ traffic: Traffic) async throws -> PolicyDiff {
    try await PolicyDiff(
      old: old, new: new, provider: Self.phone, traffic: traffic, providers: ProviderRegistry([PhoneOTP()])
    ) {
      try SQLiteStore(path: ":memory:", keyFingerprint: [1])
    }
  }

  @Test func equalGenerationsHaveNoDifferences() async throws {
    let report = try await diff(generation(max: 5), generation(max: 5), Traffic(seed: 3, people: 8, days: 1))
    #expect(report.flips.isEmpty)
    #expect(report.text(colour: false) == "\(report.decisions) decisions about 8 people: none differs.")
  }

  @Test func replayOfALogUsesSeparateCounters() async throws {
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
    let text = report.text(colour: false)
    #expect(
      text.hasSuffix(
        """


        5 decisions about 1 person: 3 differ, for one cause.
        ████████████░░░░░░░░  60 %

            count  act    was → is                          by
                1  wrong  invalid_code → too_many_attempts  policies/test.lua:1
              + 2  that follow, of one person: 1 right, 1 wrong
        """), "\(text)")
    #expect(report.causes.map(\.followUps) == [["wrong": 1, "right": 1]])
    // The causing setting is listed first, with its effect.
    #expect(report.settings.map(\.path) == ["limits.verify.max"])
    #expect(report.settings.first?.old == "5" && report.settings.first?.new == "2")
    #expect(report.settings.first?.effect.guesses.map { $0.old.map { $0 > 100 } ?? false } == true)
    #expect(report.settings.first?.effect.locks == .init(old: "after 5 in 24h for 15m", new: "after 2 in 24h for 15m"))
    #expect(text.hasPrefix("setting") && text.contains("guesses in 30 days"), "\(text)")
    #expect(report.text(colour: true).contains("\u{1b}[31mtoo_many_attempts"))
    #expect(report.flips.map(\.first) == [2, 4])
  }

  @Test func refusedRequestsAreReplayed() throws {
    let events = """
      [{"at":"2026-11-20T12:00:09Z","kind":"refused","code":"not_here","identifier":"b","detail":{"act":"submit"}},
       {"at":"2026-11-20T12:00:03Z","kind":"refused","code":"rate_limited","identifier":"b","detail":{"act":"send"}},
       {"at":"2026-11-20T12:00:02Z","kind":"refused","code":"account_not_found","identifier":"a","detail":{"act":"send"}},
       {"at":"2026-11-20T12:00:01Z","kind":"refused","code":"invalid_code","identifier":"c","provider":"pin"},
       {"at":"2026-11-20T12:00:00Z","kind":"refused","code":"no_route"}]
      """
    let traffic = try Traffic(recorded: Data(events.utf8), of: PhoneOTP().descriptor)
    #expect(traffic.acts.map(\.kind) == [.send, .send, .right])
    #expect(traffic.people == 2 && traffic.unregistered == [0])
  }

  /// Events within one second keep their order: two sign-ins of a user do not overlap.
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

  /// Entering a PIN has no identifier and no preceding message, so it also begins the step.
  @Test func logOfSecretStepsIsReplayed() async throws {
    let wrong = (1...4).map {
      #"{"at":"2026-11-20T12:00:0\#($0).000Z","kind":"refused","code":"invalid_pin","provider":"pin","account":"ac_1"}"#
    }
    let events =
      wrong.joined(separator: "\n") + "\n"
      + #"{"at":"2026-11-20T12:00:09.000Z","kind":"code_verified","provider":"pin","account":"ac_1"}"#
    let pin = ProviderName(test: "pin")
    let traffic = try Traffic(recorded: Data(events.utf8), of: PIN().descriptor)
    #expect(traffic.acts.map(\.kind) == [.wrong, .wrong, .wrong, .wrong, .right] && traffic.people == 1)
    let generation = { (max: Int) in
      TestGeneration(
        gateway: .test(providers: [pin: ProviderSettings()]),
        flows: [.test("pin_unlock", account: .existing, steps: [.test(pin)])],
        policies: [
          .test(
            pin,
            limits: [
              .test("verify", on: .verify, per: .account, max: max, window: .seconds(86_400), lock: [.seconds(900)])
            ])
        ])
    }
    let report = try await PolicyDiff(
      old: generation(5), new: generation(3), provider: pin, traffic: traffic,
      providers: ProviderRegistry(ShippedProviders.all)
    ) { try SQLiteStore.memory() }
    let flips = report.flips.map { "\($0.count) \($0.act): \($0.old), \($0.new)" }
    #expect(
      flips == ["2 wrong: invalid_pin, too_many_attempts", "1 right: ok, too_many_attempts"],
      "\(report.text(colour: false))")
  }

  /// A user whose decisions agree again and later differ is a new root cause. Follow-ups belong to their root cause.
  @Test func decisionsAreGroupedByRootCause() async throws {
    let act = { (second: Int, person: String, kind: String) in
      let time = "2026-11-20T12:\(String(format: "%02d", second / 60)):\(String(format: "%02d", second % 60)).000Z"
      return #"{"at":"\#(time)",\#(kind),"identifier":"\#(person)","address":"192.0.2.1"}"#
    }
    let sent = #""kind":"code_sent""#
    let wrong = #""kind":"refused","code":"invalid_code""#
    let right = #""kind":"code_verified""#
    let events = [
      act(0, "a", sent), act(1, "a", wrong), act(2, "a", wrong), act(3, "a", right), act(4, "b", sent),
      act(5, "b", wrong), act(6, "b", right),
      act(1000, "a", sent), act(1001, "a", right),
      act(1300, "b", sent), act(1301, "b", wrong), act(1302, "b", wrong), act(1303, "b", right),
    ]
    let traffic = try Traffic(recorded: Data(events.joined(separator: "\n").utf8), of: PhoneOTP().descriptor)
    let report = try await diff(generation(max: 5), generation(max: 2), traffic)
    let causes = report.causes.map {
      "\($0.count) \($0.act) \($0.new), \($0.people) people, \($0.followUps.values.reduce(0, +)) follow"
    }
    #expect(causes == ["2 wrong too_many_attempts, 2 people, 3 follow"], "\(causes) \(report.text(colour: false))")
    #expect(report.causes.map(\.size).reduce(0, +) == report.flips.map(\.count).reduce(0, +))
  }

  /// Every kind of setting, with its location and effect.
  @Test func settingsThatDifferAreListedWithTheirEffects() async throws {
    let old = """
      return policy "phone_otp" {
        code = { length = 6 },
        limits = {
          send = { on = "send", per = "phone", max = 4, window = "15m" },
          verify = { on = "verify", per = "phone", max = 5, window = "24h", lock = { "15m", "1h" } },
          gone = { on = "send", per = "ip", max = 9, window = "1h" },
        },
        send = function(f) if f.phone.country == "US" then return allow end return deny "not_served" end,
        verify = function(f) return allow end,
      }
      """
    let new = """
      local served = { US = true }
      return policy "phone_otp" {
        code = { length = 8 },
        limits = {
          send = { on = "send", per = "phone", max = 2, window = "15m" },
          verify = { on = "verify", per = "phone", max = 5, window = "24h", lock = "24h" },
          all = { on = "send", per = "global", max = 100, window = "1h" },
        },
        send = function(f) if served[f.phone.country] then return allow end return deny "not_served" end,
        -- A comment is no change, and neither is a line.
        verify = function(f)
          return allow
        end,
      }
      """
    let generation = { (policy: String, flow: String) in
      try TestFolder([
        "policies/phone_otp.lua": policy,
        "flows/login.lua": "return flow \"login\" { account = \"existing\", \(flow) }",
      ]).generation()
    }
    let report = try await PolicyDiff(
      old: generation(old, "steps = { { \"phone_otp\" } }"),
      new: generation(
        new,
        "steps = { any_of { \"phone_otp\", \"email_code\" } }, session = { lifetime = \"1h\", idle = \"30m\",\n remember = { lifetime = \"90d\", idle = \"30d\" } }"
      ),
      provider: Self.phone, traffic: Traffic(seed: 1, people: 2, days: 1), providers: ProviderRegistry([PhoneOTP()])
    ) { try SQLiteStore.memory() }
    let listed = report.settings.map { "\($0.place) \($0.path): \($0.old ?? "nothing") → \($0.new ?? "nothing")" }
    #expect(
      listed == [
        "policies/phone_otp.lua:3 code.length: 6 → 8",
        "policies/phone_otp.lua:7 limits.all: nothing → { on = \"send\", per = \"global\", max = 100, window = \"1h\", counts = \"all\" }",
        "policies/phone_otp.lua:5 limits.send.max: 4 → 2",
        "policies/phone_otp.lua:6 limits.verify.lock: { \"15m\", \"1h\" } → \"24h\"",
        "policies/phone_otp.lua:9 send: function (policies/phone_otp.lua:8) → another (policies/phone_otp.lua:9)",
        "policies/phone_otp.lua:11 verify: function (policies/phone_otp.lua:9) → another (policies/phone_otp.lua:11)",
        "policies/phone_otp.lua:6 limits.gone: { on = \"send\", per = \"ip\", max = 9, window = \"1h\", counts = \"all\" } → nothing",
        "flows/login.lua:1 steps[1]: \"phone_otp\" → any_of { \"phone_otp\", \"email_code\" }",
        "flows/login.lua:1 session.lifetime: \"12h\" → \"1h\"", "flows/login.lua:1 session.idle: \"1h\" → \"30m\"",
        "flows/login.lua:1 session.remember.lifetime: nothing → \"90d\"",
        "flows/login.lua:1 session.remember.idle: nothing → \"30d\"",
      ], "\(listed.joined(separator: "\n"))")
    let effects = Dictionary(report.settings.map { ($0.path, $0.effect) }) { first, _ in first }
    #expect(effects["code.length"]?.probability != nil && effects["code.length"]?.guesses == nil)
    #expect(
      effects["limits.send.max"]?.messagesToOne?.old == 768 && effects["limits.send.max"]?.messagesToOne?.new == 384)
    #expect(effects["limits.all"]?.messages == .init(old: nil, new: 100))
    #expect(
      effects["limits.verify.lock"]?.locks == .init(old: "after 5 in 24h for 15m, 1h", new: "after 5 in 24h for 24h"))
    #expect(effects["limits.verify.lock"]?.guesses?.new == 150)
    #expect(effects["send"]?.isEmpty == true)
    let text = (report.settings.text(colour: false) ?? "").replacing(#/ +/#, with: " ")
    #expect(
      text.contains("policies/phone_otp.lua:5 limits.send.max 4 → 2\n messages to one a day 768 → 384\n"), "\(text)")
  }

  @Test func reformattedFunctionIsEqual() throws {
    let text = { (policy: String) in
      let generation = try #require(try TestFolder(["policies/phone_otp.lua": policy]).generation() as? Generation)
      return FunctionTexts(generation).text(of: FunctionName("policies/phone_otp.send"))
    }
    let first = try text("return policy \"phone_otp\" { send = function(f) return allow end }")
    let second = try text(
      "-- why\nreturn policy \"phone_otp\" {\n  code = { length = 8 },\n  send = function( f ) -- all\n    return allow\n  end }"
    )
    let third = try text("return policy \"phone_otp\" { send = function(f) return deny \"x\" end }")
    let fourth = try text("local x = 1\nreturn policy \"phone_otp\" { send = function(f) return allow end }")
    #expect(first != nil && first == second && first != third && first != fourth)
  }

  /// A week of traffic against a stricter lock: the output, 80 columns wide.
  @Test func stricterLockIsReportedInEightyColumns() async throws {
    let report = try await diff(generation(max: 5), generation(max: 3), Traffic(seed: 1, people: 10, days: 2))
    let text = report.text(colour: false)
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(text)")
    #expect(
      report.flips.contains { $0.act == "wrong" && $0.old == "invalid_code" && $0.new == "too_many_attempts" },
      "\(text)")
    #expect(report.flips.allSatisfy { $0.rule != nil }, "\(text)")
  }

  @Test func unreadableLogIsReportedByLine() {
    #expect(throws: TrafficProblem.self) {
      try Traffic(recorded: Data("{}\nnot json\n".utf8), of: PhoneOTP().descriptor)
    }
    #expect(
      performing: { try Traffic(recorded: Data("{}\nnot json\n".utf8), of: PhoneOTP().descriptor) },
      throws: { ($0 as? TrafficProblem)?.line == 2 })
  }
}
