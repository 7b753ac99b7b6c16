import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import PhoneOTP
import Testing

@testable import MoongatePolicy

/// Attacks on the real engine, compared with the bounds of `check`.
@Suite struct SimulationTests {
  private static let phone = ProviderName(test: "phone_otp")

  private func run(
    _ attacker: Simulation.Attacker, limits: [Limit]? = nil, resendAfter: [Duration] = [.seconds(60), .seconds(120)],
    span: Duration,
    addresses: Int = 50, accounts: Int = 20
  ) async throws -> SimulationReport {
    let policy: ProviderPolicy =
      limits.map { .test(Self.phone, resendAfter: resendAfter, limits: $0) } ?? .test(Self.phone)
    let generation = TestGeneration(
      gateway: .test(providers: [Self.phone: ProviderSettings(deliveries: ["sms": .outbox])]),
      flows: [
        .test("login", account: .existing, steps: [.test(Self.phone)]),
        .test("register", account: .new, steps: [.test(Self.phone)]),
      ], policies: [policy])
    return try await Simulation(
      attacker: attacker, provider: Self.phone, span: span, addresses: addresses, accounts: accounts,
      timeLimit: .seconds(600)
    ).run(generation, providers: ProviderRegistry([PhoneOTP()])) {
      try SQLiteStore(path: ":memory:", keyFingerprint: [1])
    }
  }

  @Test func aMonthOfGuessingAtTheShippedPolicyMeetsTheBound() async throws {
    let report = try await run(.guess, span: .seconds(30 * 86_400))
    #expect(report.isComplete)
    #expect(report.bound == 447)
    #expect(report.guesses <= 447)
    // The owner's sign-ins cost the attacker a minute now and then.
    #expect(report.guesses >= 430, "\(report)")
    #expect(report.ownerSignIns == 90)
    #expect(report.ownerRefused > 0)
    #expect(report.ownerLockedOutSeconds > 86_400)
    // Users who are not attacked are not affected.
    #expect(report.otherSignIns == 5 * 30 && report.otherRefused == 0)
  }

  @Test(arguments: 1...12) func simulatedAttacksStayWithinTheBound(seed: Int) async throws {
    let random = SeededRandom(seed: UInt64(seed))
    let number = { (below: UInt32) in Int(random.uniform(below: below)) }
    let minutes = { (from: Int, below: UInt32) in Duration.seconds(60 * (from + number(below))) }
    let limits: [Limit] = [
      .test(
        "verify", on: .verify, per: .phone, max: 2 + number(4), window: minutes(60, 1_380),
        lock: (0..<number(4)).map { _ in minutes(5, 240) }),
      .test("ip", on: .verify, per: .ip, max: 50, window: .seconds(3600)),
      .test("send", on: .send, per: .ip, max: 1_000, window: .seconds(3600)),
    ]
    let report = try await run(.guess, limits: limits, resendAfter: [], span: .seconds(3 * 86_400))
    let bound = try #require(report.bound)
    #expect(report.guesses <= bound, "\(limits.map(\.lock))")
    #expect(report.guesses >= bound * 9 / 10, "\(report.guesses) of \(bound): \(limits[0])")
  }

  @Test func floodIsLimitedByAddress() async throws {
    let report = try await run(.flood, span: .seconds(3 * 3600), addresses: 4)
    // 30 per hour and address, and the owner's own.
    #expect(report.messages <= 4 * 30 * 3 + report.ownerSignIns + report.otherSignIns)
    #expect(report.messages >= 4 * 30 * 3)
    #expect(report.bound == nil)
  }

  /// Attack: accounts are registered without end. The shipped limits allow ten per hour and address, and no further
  /// hashes.
  @Test func shippedLimitsBoundRegistrationsByAddress() async throws {
    let report = try await registering(span: .seconds(2 * 3600), addresses: 4, networks: 4)
    #expect(report.isComplete && report.registrations == 4 * 10 * 2, "\(report)")
    #expect(report.hashes == report.registrations, "a registration that is refused costs no hash")
    #expect(report.otherRegistrationsRefused == 0 && report.otherRefused == 0 && report.messages == 0)
  }

  @Test func registrationsOfANetworkAreLimitedPerDay() async throws {
    let report = try await registering(span: .seconds(86_400), addresses: 50, networks: 1)
    #expect(report.registrations == 200, "\(report)")
  }

  private func registering(span: Duration, addresses: Int, networks: Int) async throws -> SimulationReport {
    try await Simulation(
      attacker: .register, provider: ProviderName(test: "password"), span: span, addresses: addresses,
      networks: networks, timeLimit: .seconds(600)
    ).run(try ShippedProviders.generation(), providers: try ProviderRegistry(ShippedProviders.all)) {
      try SQLiteStore.memory()
    }
  }

  /// Without the shipped limits, the number of accounts is only limited by time.
  @Test func withoutLimitsRegistrationsHaveNoEnd() async throws {
    let generation = TestGeneration(
      gateway: .test(providers: [Self.phone: ProviderSettings(deliveries: ["sms": .outbox])]),
      flows: [
        .test("login", account: .existing, steps: [.test(Self.phone)]),
        .test("register", account: .new, steps: [.test(Self.phone)]),
      ],
      policies: [
        .test(
          Self.phone, resendAfter: [], limits: [.test("ip", on: .send, per: .ip, max: 100_000, window: .seconds(3600))])
      ])
    let report = try await Simulation(
      attacker: .register, provider: Self.phone, span: .seconds(3600), addresses: 1, timeLimit: .milliseconds(300)
    ).run(generation, providers: ProviderRegistry([PhoneOTP()])) { try SQLiteStore.memory() }
    #expect(!report.isComplete && (report.registrations ?? 0) > 10 && report.hashes == 0)
    #expect(report.messages >= report.registrations ?? 0)
  }

  /// Attack: SMS pumping over networks until the ceiling is full. Trusted devices can continue; new ones cannot.
  @Test func aFloodThatFillsTheCeilingStopsNewDevicesOnly() async throws {
    let limits: [Limit] = [
      .test("send", on: .send, per: .phone, max: 4, window: .seconds(900)),
      .test("all", on: .send, per: .global, max: 50, window: .seconds(3600)),
      .test("verify", on: .verify, per: .phone, max: 5, window: .seconds(86_400), lock: [.seconds(900)]),
    ]
    let report = try await run(.flood, limits: limits, span: .seconds(2 * 86_400), addresses: 50)
    #expect(report.messages <= 50 * 48 + report.ownerSignIns + report.otherSignIns)
    #expect(report.otherSignIns == 10 && report.otherRefused == report.otherRefusedOnNewDevices, "\(report)")
    #expect(report.otherRefusedOnNewDevices > 0)
  }

  @Test func theReportOfRegistrationsIsATable() {
    let report = SimulationReport(
      attacker: "register", provider: "password", seconds: 86_400, askedSeconds: 86_400, addresses: 100, networks: 10,
      guesses: 0, probability: nil,
      messages: 0, ownerSignIns: 3, ownerRefused: 0, ownerLockedOutSeconds: 0, otherSignIns: 5, otherRefused: 2,
      otherRefusedOnNewDevices: 2,
      registrations: 2_000, hashes: 2_000, otherRegistrations: 8, otherRegistrationsRefused: 1, bound: nil,
      accepted: nil)
    #expect(
      report.text(colour: false) == """
        register against password, 1d, 100 addresses in 10 networks

          registrations          2000  each one is an account
          hashes computed        2000  each one is processor time
          messages sent             0
          owner's sign-ins          3  none refused
          owner locked out         0s  0% of the time
          others' sign-ins          5  2 of them refused, all on new devices
          newcomers                 8  1 of them refused
        """, "\(report.text(colour: false))")
  }

  @Test func sprayingLocksNoOwnerOut() async throws {
    let report = try await run(.spray, span: .seconds(2 * 86_400), addresses: 50, accounts: 20)
    // Four guesses per day at each of twenty accounts. The owner's success does not reduce that.
    #expect(report.guesses == 2 * 4 * 20)
    #expect(report.ownerRefused == 0)
    #expect(report.ownerLockedOutSeconds == 0)
  }

  /// The report, 80 columns wide.
  @Test func theReportIsATable() {
    var report = SimulationReport(
      attacker: "guess", provider: "phone_otp", seconds: 2_592_000, askedSeconds: 2_592_000, addresses: 100,
      guesses: 441, probability: 0.00044,
      messages: 175, ownerSignIns: 90, ownerRefused: 61, ownerLockedOutSeconds: 2_000_000, otherSignIns: 150,
      otherRefused: 0, bound: 447,
      accepted: 0.001)
    #expect(
      report.text(colour: false) == """
        guess against phone_otp, 30d, 100 addresses

          guesses                 441  ███████████████████░ of 447 that check allows
          chance of entry     0.044 %  ████████░░░░░░░░░░░░ accepted: 0.1 %
          messages sent           175
          owner's sign-ins         90  61 of them refused
          owner locked out     23d 3h  77% of the time
          others' sign-ins        150  none refused
        """, "\(report.text(colour: false))")
    #expect(!report.isTooLikely && report.text(colour: true).contains("\u{1b}[32m████████░"))
    report = SimulationReport(
      attacker: "flood", provider: "phone_otp", seconds: 3_600, askedSeconds: 86_400, addresses: 1, guesses: 0,
      probability: 0, messages: 30,
      ownerSignIns: 0, ownerRefused: 0, ownerLockedOutSeconds: 0, otherSignIns: 2, otherRefused: 1, bound: nil,
      accepted: nil,
      // The burst at the end of the hour belongs to the next hour.
      settled: (0, 20))
    #expect(
      report.text(colour: false) == """
        flood against phone_otp, 1h, 1 address

          messages sent            30  each one is money
          owner's sign-ins          0  none refused
          owner locked out         0s  0% of the time
          others' sign-ins          2  1 of them refused

          Time limit reached: 1h of 1d simulated. Extrapolated:
          480 messages
        """, "\(report.text(colour: false))")
    report.price = 0.05
    report.timeLimit = .seconds(9)
    let text = report.text(colour: false)
    #expect(text.contains("  messages sent            30  1.50 at 0.05 each\n"), "\(text)")
    #expect(text.contains("  Time limit (9s) reached: 1h of 1d simulated."), "\(text)")
    #expect(text.hasSuffix("\n  480 messages, 24.00 for messages"), "\(text)")
  }

  /// An attack that ends early is simulated to the end of the time, and the report names the reason.
  @Test func disabledAccountIsReported() async throws {
    let limits: [Limit] = [
      Limit(
        name: "hard", action: .verify, key: .phone, max: .fixed(4), window: .fixed(.seconds(86_400)), counts: .failures,
        lock: [], disables: true,
        location: SourceLocation(file: "policies/phone_otp.lua", line: 7)),
      .test("send", on: .send, per: .ip, max: 1_000, window: .seconds(3600)),
    ]
    let report = try await run(.guess, limits: limits, resendAfter: [], span: .seconds(2 * 86_400))
    #expect(report.isComplete && report.guesses == report.bound, "\(report)")
    #expect(
      report.ended?.code == "disabled" && report.ended?.rule == "limits.hard"
        && report.ended?.location == "policies/phone_otp.lua:7")
    let text = report.text(colour: false).split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(
      !text.contains("ran out")
        && text.contains("the credential was disabled by limits.hard (policies/phone_otp.lua:7)"), "\(text)")
    let sprayed = try await run(.spray, limits: limits, resendAfter: [], span: .seconds(86_400), accounts: 2)
    #expect(sprayed.isComplete && sprayed.guesses > 0)
  }

  @Test func aPolicyThatDeniesEverythingEndsAnAttack() async throws {
    let folder = try TestFolder([
      "policies/phone_otp.lua": "return policy \"phone_otp\" {\n  send = function(f) return deny \"closed\" end,\n}",
      "flows/register.lua":
        "return flow \"register\" { purpose = \"register\", account = \"new\", steps = { { \"phone_otp\" } } }",
    ])
    let generation = try folder.generation()
    for attacker in [Simulation.Attacker.flood, .guess, .spray] {
      let report = try await Simulation(
        attacker: attacker, provider: Self.phone, span: .seconds(2 * 86_400), addresses: 5, accounts: 3,
        timeLimit: .seconds(600)
      ).run(generation, providers: ProviderRegistry([PhoneOTP()])) { try SQLiteStore.memory() }
      #expect(report.isComplete && report.guesses == 0 && report.messages == 0)
      #expect(
        report.ended?.code == "closed" && report.ended?.location == "policies/phone_otp.lua:2",
        "\(attacker): \(String(describing: report.ended))")
    }
  }

  /// Attack: an attacker waits until a maintenance window is over. One that never ends ends the attack.
  @Test(arguments: [("hour(f.now, \"UTC\") ~= 5", nil), ("false", "maintenance")] as [(String, String?)])
  func attackWaitsUntilAdmitted(_ admits: String, _ ended: String?) async throws {
    let admit = "function(f) return \(admits) and allow or deny \"maintenance\" end"
    let folder = try TestFolder(["accounts.lua": "return accounts {\n  admit = \(admit),\n}"])
    let report = try await Simulation(
      attacker: .guess, provider: Self.phone, span: .seconds(3 * 86_400), addresses: 5, accounts: 3,
      timeLimit: .seconds(600)
    ).run(try folder.generation(), providers: ProviderRegistry([PhoneOTP()])) { try SQLiteStore.memory() }
    #expect(report.isComplete && report.ended?.code == ended && (report.guesses > 10) == (ended == nil), "\(report)")
    if ended != nil { #expect(report.ended?.rule == "accounts.admit" && report.ended?.location == "accounts.lua:2") }
  }

  @Test func aPictureShowsGuessesMessagesAndLocks() async throws {
    let limits: [Limit] = [
      .test(
        "verify", on: .verify, per: .phone, max: 3, window: .seconds(86_400), lock: [.seconds(900), .seconds(3600)]),
      .test("send", on: .send, per: .ip, max: 1_000, window: .seconds(3600)),
    ]
    let report = try await run(.guess, limits: limits, resendAfter: [], span: .seconds(86_400))
    let timeline = try #require(report.timeline)
    #expect(timeline.points.last?.guesses == report.guesses && timeline.points.last?.messages == report.messages)
    #expect(
      zip(timeline.points, timeline.points.dropFirst()).allSatisfy {
        $0.seconds <= $1.seconds && $0.guesses <= $1.guesses
      })
    #expect(timeline.points.count <= 722 && timeline.locks.allSatisfy { $0.from < $0.to && $0.to <= timeline.span })
    #expect(Int64(timeline.locks.map { $0.to - $0.from }.reduce(0, +)) <= report.ownerLockedOutSeconds + 1)
    let svg = SimulationPicture(report, timeline).svg
    #expect(
      svg.hasPrefix("<svg xmlns=") && svg.hasSuffix("</svg>\n") && !svg.contains("<script") && !svg.contains("href"))
    #expect(svg.components(separatedBy: "class=\"lock\"").count == 1 + 2 * timeline.locks.count)
    #expect(
      svg.contains("class=\"guesses\"") && svg.contains("class=\"messages\"")
        && svg.contains("check allows \(report.bound ?? 0)"))
    #expect(svg.contains(">hour 24<"))
  }

  @Test func onlySMSHaveAPrice() async throws {
    let simulation = Simulation(attacker: .guess, provider: "email_code", span: .seconds(60), addresses: 1, price: 0.05)
    await #expect(
      performing: {
        _ = try await simulation.run(
          try ShippedProviders.generation(), providers: try ProviderRegistry(ShippedProviders.all)
        ) {
          try SQLiteStore.memory()
        }
      }, throws: { "\($0)" == "email_code sends no SMS, so a price does not apply" })
  }

  /// PINs and passwords with the shipped policies: the same best plan, and never more than `check` reports.
  @Test(arguments: [("pin", "pin_unlock"), ("password", "login_password")])
  func aMonthOfGuessingAtSecretsMeetsTheBound(name: String, flow: String) async throws {
    let generation = try ShippedProviders.generation()
    let provider = try #require(ProviderName(rawValue: name))
    let report = try await Simulation(
      attacker: .guess, provider: provider, span: .seconds(30 * 86_400), addresses: 50, timeLimit: .seconds(600)
    ).run(generation, providers: try ProviderRegistry(ShippedProviders.all)) { try SQLiteStore.memory() }
    #expect(report.isComplete && report.bound == 447 && report.guesses <= 447, "\(report)")
    #expect(report.guesses >= 430, "\(report)")
    #expect((report.probability == nil) == (name == "password"))
    #expect(report.messages == 0)
    #expect(report.ownerSignIns == 90 && report.ownerRefused > 0 && report.ownerLockedOutSeconds > 86_400)
    #expect(report.otherSignIns == 5 * 30 && report.otherRefused == 0)
    #expect(try Target(generation, provider, of: ProviderRegistry(ShippedProviders.all), wantsNew: false).flow == flow)
  }

  @Test func sprayingSecretsLocksNoOwnerOut() async throws {
    let report = try await Simulation(
      attacker: .spray, provider: ProviderName(test: "password"), span: .seconds(2 * 86_400), addresses: 50,
      accounts: 20, timeLimit: .seconds(600)
    ).run(try ShippedProviders.generation(), providers: try ProviderRegistry(ShippedProviders.all)) {
      try SQLiteStore.memory()
    }
    #expect(report.guesses == 2 * 4 * 20)
    #expect(report.ownerRefused == 0 && report.ownerLockedOutSeconds == 0)
  }

  @Test(arguments: [
    ("pin", Simulation.Attacker.flood, "pin sends no codes, so a flood is not possible"),
    (
      "google_oauth", .guess, "google_oauth has neither codes nor secrets in this gateway, so there is nothing to guess"
    ),
  ]) func providerWithoutASecretCannotBeGuessed(name: String, attacker: Simulation.Attacker, sentence: String)
    async throws
  {
    let simulation = Simulation(
      attacker: attacker, provider: try #require(ProviderName(rawValue: name)), span: .seconds(1), addresses: 1)
    await #expect(
      performing: {
        _ = try await simulation.run(
          try ShippedProviders.generation(), providers: try ProviderRegistry(ShippedProviders.all)
        ) {
          try SQLiteStore.memory()
        }
      }, throws: { "\($0)" == sentence })
  }

  @Test func impossibleAttackIsRefusedWithAReason() async throws {
    let generation = TestGeneration(gateway: .test(), flows: [], policies: [.test(Self.phone)])
    let providers = try ProviderRegistry([PhoneOTP()])
    for (name, sentence) in [
      ("phone_otp", "no flow begins with phone_otp, so no account can be attacked through it"),
      ("pin", "gateway.lua does not configure the provider pin; available: phone_otp"),
    ] {
      let simulation = Simulation(
        attacker: .guess, provider: try #require(ProviderName(rawValue: name)), span: .seconds(1), addresses: 1)
      await #expect(
        performing: {
          _ = try await simulation.run(generation, providers: providers) {
            try SQLiteStore(path: ":memory:", keyFingerprint: [1])
          }
        }, throws: { "\($0)" == sentence })
    }
  }

  @Test(
    arguments: [
      (.closed, "accounts.lua closes registration, so nobody can register"),
      (.invited(), "accounts.lua requires an invitation for a new account, so an attacker cannot register"),
    ] as [(RegistrationRule, String)])
  func registrationThatIsNotOpenCannotBeAttacked(rule: RegistrationRule, sentence: String) async throws {
    var generation = TestGeneration(
      gateway: .test(), flows: [.test("register", account: .new, steps: [.test(Self.phone)])],
      policies: [.test(Self.phone)])
    generation.accounts.registration = rule
    let closed = generation
    let simulation = Simulation(attacker: .register, provider: Self.phone, span: .seconds(1), addresses: 1)
    await #expect(
      performing: {
        _ = try await simulation.run(closed, providers: try ProviderRegistry([PhoneOTP()])) {
          try SQLiteStore.memory()
        }
      }, throws: { "\($0)" == sentence })
  }
}
