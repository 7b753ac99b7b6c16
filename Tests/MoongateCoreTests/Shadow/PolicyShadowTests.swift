import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// A candidate policy in shadow mode reports each decision that would differ, with its cause, and has no other effect.
@Suite struct PolicyShadowTests {
  private static let phone = EngineTestBench.phone
  private static let send = FunctionName("policies/phone_otp.send")
  private static let verify = FunctionName("policies/phone_otp.verify")
  private static let when = FunctionName("flows/login.steps[1].when")
  private static let most = FunctionName("policies/phone_otp.limits.verify.max")

  /// The test policy: without timers, so that acts do not depend on each other.
  private static func policy(
    verify: Limit = .test("verify", on: .verify, per: .phone, max: 5, window: .seconds(86_400), lock: [.seconds(900)]),
    sends: Int = 9,
    more: [Limit] = [], resendAfter: [Duration] = [], send: FunctionName? = nil, judge: FunctionName? = nil
  ) -> ProviderPolicy {
    let plain = ProviderPolicy.test(
      phone, resendAfter: resendAfter,
      limits: [verify, .test("send", on: .send, per: .phone, max: sends, window: .seconds(3600))] + more)
    return ProviderPolicy(
      provider: plain.provider, code: plain.code, resendAfter: plain.resendAfter, limits: plain.limits,
      unknownAccount: plain.unknownAccount,
      message: plain.message, send: send, verify: judge,
      locations: ["timers.resend_after": SourceLocation(file: "policies/test.lua", line: 3)])
  }

  private func bench(_ change: (inout TestGeneration) -> Void = { _ in }) async throws -> EngineTestBench {
    let bench = try await EngineTestBench { generation in
      generation.policies[Self.phone] = Self.policy()
      change(&generation)
    }
    try await bench.registered()
    return bench
  }

  /// Puts a modified copy of the active generation into shadow mode.
  private func watch(_ bench: EngineTestBench, _ change: (inout TestGeneration) -> Void) throws {
    var candidate = try #require(bench.generations.current as? TestGeneration)
    candidate.id = "candidate"
    change(&candidate)
    bench.shadow.begin(candidate, folder: "/candidate", by: "asha", at: bench.clock.now())
  }

  /// The differences, for example `3 × verify phone_otp: ok → too_many_attempts by policies/test.lua:1`.
  private func seen(_ bench: EngineTestBench) async throws -> [String] {
    var judge: ShadowJudge?
    while await bench.shadow.look(nil, &judge) {}
    let status = try #require(bench.shadow.status)
    #expect(status.failure == nil)
    return status.tally.differences.map { cause, difference in
      #expect(!difference.decisions.isEmpty && difference.decisions.count <= 5 && difference.first <= difference.last)
      return "\(difference.count) × \(cause.about): \(cause.active) → \(cause.candidate)"
        + (cause.rule.map { " by \($0)" } ?? "")
    }
  }

  /// Signs in after this many mistakes.
  private func signIn(_ bench: EngineTestBench, mistakes: Int = 0) async throws {
    let id = try await bench.flow()
    guard case .success = await bench.begin(id) else { return }
    for _ in 0..<mistakes { _ = await bench.submit(id, bench.wrong) }
    _ = await bench.submit(id, bench.code)
  }

  @Test func theSameConfigurationDiffersInNothing() async throws {
    let bench = try await bench()
    try watch(bench) { _ in }
    for mistakes in [0, 4, 6, 1] { try await signIn(bench, mistakes: mistakes) }
    #expect(try await seen(bench) == [])
    #expect(bench.shadow.status?.tally.judged == ["flow": 4, "step": 21])
  }

  /// A change of a candidate, and the differences that are expected from it.
  struct Injected: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var before: @Sendable (inout TestGeneration) -> Void = { _ in }
    let change: @Sendable (inout TestGeneration) -> Void
    var mistakes = 0
    var signIns = 1
    let seen: [String]
  }

  private static let injected = [
    Injected(
      testDescription: "fewer tries",
      change: {
        $0.policies[phone] = policy(verify: .test("verify", on: .verify, per: .phone, max: 2, window: .seconds(900)))
      },
      mistakes: 3, seen: ["2 × verify phone_otp: ok → too_many_attempts by policies/test.lua:1"]),
    Injected(
      testDescription: "more tries",
      before: {
        $0.policies[phone] = policy(verify: .test("verify", on: .verify, per: .phone, max: 2, window: .seconds(900)))
      },
      change: { $0.policies[phone] = policy() }, mistakes: 3,
      seen: ["2 × verify phone_otp: too_many_attempts → ok by policies/test.lua:1"]),
    Injected(
      testDescription: "no sends",
      change: { $0.policies[phone] = policy(more: [.test("few", on: .send, per: .ip, max: 1, window: .seconds(900))]) },
      signIns: 2, seen: ["1 × send phone_otp: ok → rate_limited by policies/test.lua:1"]),
    Injected(
      testDescription: "a limit on begins",
      change: {
        $0.policies[phone] = policy(more: [.test("begins", on: .begin, per: .ip, max: 1, window: .seconds(900))])
      },
      signIns: 2, seen: ["1 × begin phone_otp: ok → rate_limited by policies/test.lua:1"]),
    Injected(
      testDescription: "send denies",
      change: {
        $0.policies[phone] = policy(send: send)
        $0.verdicts[send] = { _ in .deny("not_here") }
      }, seen: ["1 × send phone_otp: ok → not_here"]),
    Injected(
      testDescription: "verify wants another provider",
      change: {
        $0.policies[phone] = policy(judge: verify)
        $0.verdicts[verify] = { _ in .requireAlso(EngineTestBench.pin) }
      }, seen: ["1 × verify phone_otp: ok → require_also pin"]),
    Injected(
      testDescription: "verify fails",
      change: {
        $0.policies[phone] = policy(judge: verify)
        $0.verdicts[verify] = { _ in
          .fault(
            PolicyFault(kind: .error, location: SourceLocation(file: "policies/test.lua", line: 8), message: "nil"))
        }
      }, seen: ["1 × verify phone_otp: ok → policy_error by policies/test.lua:8"]),
    Injected(
      testDescription: "a number that varies",
      change: {
        let plain = Limit.test("verify", on: .verify, per: .phone, max: 1, window: .seconds(900))
        $0.policies[phone] = policy(
          verify: Limit(
            name: "verify", action: .verify, key: .phone, max: .varying(lowest: 1, highest: 9, most),
            window: plain.window, counts: plain.counts,
            lock: [],
            disables: false, location: plain.location))
        $0.values[most] = { _ in 1 }
      }, mistakes: 1, seen: ["1 × verify phone_otp: ok → too_many_attempts by policies/test.lua:1"]),
    Injected(
      testDescription: "no such provider", change: { $0.policies[phone] = nil },
      seen: [
        "1 × begin phone_otp: ok → not_configured by gateway.lua",
        "1 × send phone_otp: ok → not_configured by gateway.lua",
        "1 × verify phone_otp: ok → not_configured by gateway.lua",
      ]),
    Injected(
      testDescription: "no such flow", change: { $0.flows["login"] = nil },
      seen: ["1 × flow login: existing: phone_otp → no such flow by flows/login.lua:1"]),
    Injected(
      testDescription: "other steps",
      change: {
        $0.flows["login"] = .test(
          "login", account: .existing, steps: [.test(phone), .test(EngineTestBench.pin, isSkippable: true)])
      },
      seen: ["1 × flow login: existing: phone_otp → existing: phone_otp, pin (may be skipped) by flows/login.lua:1"]),
    Injected(
      testDescription: "a condition",
      before: {
        $0.flows["login"] = .test("login", account: .existing, steps: [.test(phone, when: when)])
        $0.conditions[when] = { _ in true }
      }, change: { $0.conditions[when] = { _ in false } },
      seen: ["1 × condition flows/login.steps[1].when: holds → does not hold"]),
    // The active generation has no groups, and the candidate has one by what the session has passed.
    Injected(
      testDescription: "a group by the session",
      before: {
        $0.flows["login"] = .test(
          "login", account: .existing, steps: [.test(phone), .test(EngineTestBench.mail, when: when)])
        $0.conditions[when] = { _ in false }
      }, change: { $0.conditions[when] = { $0.account.groups.session?.passed[phone] == nil } }, seen: []),
  ]

  @Test(arguments: injected) func eachDifferenceIsReportedWithItsCause(_ injected: Injected) async throws {
    let bench = try await bench(injected.before)
    try watch(bench, injected.change)
    for _ in 0..<injected.signIns { try await signIn(bench, mistakes: injected.mistakes) }
    let told = try await seen(bench)
    #expect(told == injected.seen)
  }

  /// A shorter lock of the candidate expires while the active one is still in force.
  @Test func shorterLockIsReported() async throws {
    let lock = { (length: Duration) in
      Self.policy(verify: .test("verify", on: .verify, per: .phone, max: 2, window: .seconds(86_400), lock: [length]))
    }
    let bench = try await bench { $0.policies[Self.phone] = lock(.seconds(900)) }
    try watch(bench) { $0.policies[Self.phone] = lock(.seconds(60)) }
    try await signIn(bench, mistakes: 2)
    bench.clock.advance(by: .seconds(100))
    try await signIn(bench)
    let told = try await seen(bench)
    #expect(told == ["1 × send phone_otp: too_many_attempts → ok by policies/test.lua:1"])
  }

  @Test func changedResendTimerIsReported() async throws {
    let bench = try await bench()
    try watch(bench) { $0.policies[Self.phone] = Self.policy(resendAfter: [.seconds(60)]) }
    let id = try await bench.begun()
    _ = await bench.engine.resend(id, client: bench.client())
    #expect(try await seen(bench) == ["1 × send phone_otp: ok → resend_too_soon by policies/test.lua:3"])
  }

  @Test func changedRegistrationLimitIsReported() async throws {
    let bench = try await bench {
      $0.policies[Self.phone] = Self.policy(more: [.test("new", on: .register, per: .ip, max: 9, window: .seconds(900))]
      )
    }
    try watch(bench) {
      $0.policies[Self.phone] = Self.policy(more: [
        .test("new", on: .register, per: .ip, max: 1, window: .seconds(9_000))
      ])
    }
    for number in ["918888888888", "917777777777"] { try await bench.registered(number) }
    let told = try await seen(bench)
    #expect(told == ["1 × register phone_otp: ok → rate_limited by policies/test.lua:1"])
  }

  // MARK: requests

  private func route(
    _ path: String, groups: [String]? = nil, open: Bool = false, decide: FunctionName? = nil, line: Int
  ) throws -> Route {
    let parts = path.split(separator: "/")
    let pattern = PathPattern(text: path, segments: parts.map { $0 == "**" ? .anySegments : .glob(Array($0.utf8)) })
    return Route(
      host: nil, path: pattern, methods: nil, upstreams: [Upstream(isSecure: false, host: "127.0.0.1", port: 1)],
      isOpen: open, flow: "login",
      requirement: nil, decide: decide, timeout: .seconds(1), allowsUpgrade: false, headers: [], bodyLimit: nil,
      groups: groups.map { GroupRequirement(anyOf: $0.compactMap { GroupName(rawValue: $0) }) },
      location: SourceLocation(file: "routes.lua", line: line))
  }

  @Test func changedAccessIsReported() async throws {
    let decide = FunctionName("routes[1].decide")
    let before = [
      try route("/a/**", line: 1), try route("/b/**", line: 2), try route("/c/**", line: 3),
      try route("/d/**", open: true, line: 4),
    ]
    let after = [
      try route("/a/**", groups: ["ops"], line: 11), try route("/c/**", decide: decide, line: 12),
      try route("/d/**", line: 13),
    ]
    let bench = try await bench { $0.routes = RouteTable(routes: before) }
    try watch(bench) {
      $0.routes = RouteTable(routes: after)
      $0.verdicts[decide] = { facts in facts.request?.query == "x=1" ? .deny("closed") : .allow }
    }
    let account = try #require(try await bench.store.accounts(after: nil, limit: 1).first)
    let now = bench.clock.now()
    let session = SessionSnapshot(
      session: Session(
        id: "se_1", token: SessionToken(from: SystemRandom()).hash, account: account.id, createdAt: now,
        expiresAt: now + .seconds(900),
        idle: .seconds(900),
        lastSeenAt: now, passed: [], userAgent: nil), account: account)
    for (path, query, snapshot) in [
      ("/a/1", "", session), ("/b/%31", "", session), ("/c/1", "x=1", session), ("/c/1", "", session),
      ("/d/1", "", nil),
    ] {
      bench.shadow.take(
        ObservedRequest(
          facts: RequestFacts(method: "GET", host: "localhost", path: path, query: query), address: .unspecified,
          userAgent: nil, session: snapshot),
        DecisionID(from: SystemRandom()), at: now)
    }
    #expect(
      try await seen(bench) == [
        "1 × request: pass → closed by routes.lua:12", "1 × request: pass → forbidden by routes.lua:11",
        "1 × request: pass → no_route by routes.lua",
        "1 × request: pass → unauthenticated by routes.lua:13",
      ])
    #expect(bench.shadow.status?.tally.judged == ["request": 5])
  }

  /// Paths with slashes inside names are judged as in the proxy.
  @Test func newRouteBeforeAnEncodedOneIsReported() async throws {
    var all = try route("/**", open: true, line: 12)
    all.encoded = .slash
    let routes = [all]
    let admin = try route("/admin/**", open: true, line: 11)
    let bench = try await bench { $0.routes = RouteTable(routes: routes) }
    try watch(bench) { $0.routes = RouteTable(routes: [admin] + routes) }
    for path in ["/x%2Fy", "/admin%2Fx"] {
      bench.shadow.take(
        ObservedRequest(
          facts: RequestFacts(method: "GET", host: "localhost", path: path, query: ""), address: .unspecified,
          userAgent: nil, session: nil),
        DecisionID(from: SystemRandom()), at: bench.clock.now())
    }
    #expect(try await seen(bench) == ["1 × request: pass → bad_request by routes.lua:12"])
  }

  // MARK: without effect

  /// Attack: a candidate uses up attempts, locks people out or sends messages, although it is only in shadow mode.
  @Test func shadowModeHasNoSideEffects() async throws {
    let bench = try await bench()
    try watch(bench) {
      $0.policies[Self.phone] = Self.policy(
        verify: .test(
          "verify", on: .verify, per: .phone, max: 1, window: .seconds(86_400), lock: [.seconds(86_400)], disables: true
        ))
    }
    let messages = bench.delivery.messages.count
    try await signIn(bench, mistakes: 3)
    _ = try await seen(bench)
    #expect(bench.delivery.messages.count == messages + 1)
    #expect(try await bench.store.locks(at: bench.clock.now()).isEmpty)
    bench.shadow.end()
    let id = try await bench.begun()
    for _ in 0..<1 { #expect(await bench.submit(id, bench.wrong).refusal?.code == .invalidCode) }
    guard case .success = await bench.submit(id, bench.code) else {
      Issue.record("the tries that the candidate counts are used up")
      return
    }
    #expect(bench.delivery.messages.count == messages + 2)
    #expect(bench.shadow.status == nil)
  }

  /// Attack: a function returns a different reason for each visitor, and requests come faster than they can be
  /// compared, until the memory is full.
  @Test func memoryOfTheShadowIsBounded() async throws {
    let bench = try await bench { $0.routes = RouteTable(routes: []) }
    let decide = FunctionName("routes[1].decide")
    let open = try route("/**", open: true, line: 1)
    try watch(bench) {
      $0.policies[Self.phone] = Self.policy(send: Self.send)
      $0.verdicts[Self.send] = { facts in .deny("reason_\(facts.now.milliseconds)") }
      $0.routes = RouteTable(routes: [open])
      $0.verdicts[decide] = { _ in .allow }
    }
    let subject = StepSubject(
      provider: Self.phone, identifier: nil, account: nil, conceals: false, flow: TokenHash(bytes: []), challenge: nil,
      address: .unspecified)
    var judge: ShadowJudge?
    for round in 0..<2 {
      for number in 0..<3_000 {
        let watch = RequestWatch()
        let at = Timestamp(milliseconds: Int64(round * 3_000 + number))
        watch.settled(subject, Facts(now: at, client: ClientFacts(address: .unspecified)), expiredAt: nil, verify: 0)
        watch.asked(.send)
        bench.shadow.take(watch, RequestDecision(decision: DecisionID(from: SystemRandom()), at: at))
        guard bench.shadow.hasRoom() else { continue }
        bench.shadow.take(
          ObservedRequest(
            facts: RequestFacts(method: "GET", host: "h", path: "/", query: ""), address: .unspecified, userAgent: nil,
            session: nil),
          DecisionID(from: SystemRandom()), at: at)
      }
      while await bench.shadow.look(nil, &judge) {}
    }
    let status = try #require(bench.shadow.status)
    #expect(status.tally.differences.count == ShadowTally.maxCauses)
    #expect(status.tally.judged == ["step": 2 * PolicyShadow.maxActs, "request": 2 * PolicyShadow.maxRequests])
    #expect(
      status.dropped == ["step": 6_000 - 2 * PolicyShadow.maxActs, "request": 6_000 - 2 * PolicyShadow.maxRequests])
    #expect(
      status.tally.others == 2 * PolicyShadow.maxActs + 2 * PolicyShadow.maxRequests
        - status.tally.differences.map(\.difference.count).reduce(0, +)
    )
    let families = Dictionary(
      uniqueKeysWithValues: bench.shadow.families.map { ($0.name, $0.samples.map(\.value).reduce(0, +)) })
    #expect(families["moongate_shadow"] == 1 && families["moongate_shadow_dropped_total"] == Double(12_000 - 4 * 1_536))
    // A path that is too long to be kept is not compared.
    bench.shadow.take(
      ObservedRequest(
        facts: RequestFacts(method: "GET", host: "h", path: "/" + String(repeating: "x", count: 9_000), query: ""),
        address: .unspecified,
        userAgent: nil,
        session: nil), DecisionID(from: SystemRandom()), at: bench.clock.now())
    #expect(await bench.shadow.look(nil, &judge) == false)
  }

  /// Attack: an attacker who can see the status, such as a dashboard, learns who signs in.
  @Test func statusIdentifiesNoUser() async throws {
    let bench = try await bench()
    try watch(bench) { $0.policies[Self.phone] = nil }
    try await signIn(bench, mistakes: 1)
    _ = try await seen(bench)
    let status = try #require(bench.shadow.status)
    let account = try #require(try await bench.store.accounts(after: nil, limit: 1).first)
    let told = status.tally.differences.map { "\($0)" }.joined()
    for secret in ["919999999999", account.id, "192.0.2.1", bench.code] { #expect(!told.contains(secret)) }
  }

  @Test func failingCountersEndTheShadowWithAReason() async throws {
    struct NoMemory: Error {}
    let bench = try await bench()
    let shadow = PolicyShadow(generations: bench.generations, keys: bench.keys, random: SystemRandom()) {
      throw NoMemory()
    }
    shadow.begin(
      TestGeneration(id: "candidate", gateway: .test(), flows: [], policies: []), folder: "/candidate", by: nil,
      at: bench.clock.now())
    var judge: ShadowJudge?
    #expect(await shadow.look(nil, &judge) == false)
    #expect(shadow.status?.failure == "its functions or counters cannot be created: NoMemory()" && !shadow.isOn)
  }

  @Test func shadowRestartsAfterAReload() async throws {
    let bench = try await bench()
    try watch(bench) { $0.policies[Self.phone] = Self.policy(sends: 1) }
    for _ in 0..<2 { try await signIn(bench) }
    #expect(try await seen(bench).count == 1)
    var next = try #require(bench.generations.current as? TestGeneration)
    next.id = "next"
    bench.generations.activate(next, at: bench.clock.now())
    #expect(try await seen(bench) == [] && bench.shadow.status?.against == "next")
    // The candidate is active itself: there is nothing left to compare.
    next.id = "candidate"
    bench.generations.activate(next, at: bench.clock.now())
    var judge: ShadowJudge?
    _ = await bench.shadow.look(nil, &judge)
    #expect(bench.shadow.status == nil && !bench.shadow.isOn)
  }

  @Test func counterMemoryIsBounded() async throws {
    let bench = try await bench()
    let side = try ShadowSide(bench.generations.current, keys: bench.keys, random: SystemRandom()) {
      try SQLiteStore(path: ":memory:", keyFingerprint: [])
    }
    let subject = StepSubject(
      provider: Self.phone, identifier: Identifier(kind: .phone, value: "+1", display: "+1"), account: nil,
      conceals: false,
      flow: TokenHash(bytes: []),
      challenge: nil, address: .unspecified)
    let facts = Facts(now: bench.clock.now(), client: ClientFacts(address: .unspecified))
    for _ in 0...ShadowSide.maxCharges {
      _ = try await side.answer(
        .step(ObservedStep(action: .verify, subject: subject, facts: facts, expiredAt: nil, outcome: .success)),
        at: bench.clock.now())
    }
    #expect(side.restarts == 1)
  }
}
