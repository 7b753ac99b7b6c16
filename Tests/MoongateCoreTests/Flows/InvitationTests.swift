import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// `registration = "invited"` of accounts.lua, and invitations.
@Suite struct InvitationTests {
  private static let location = ["registration": SourceLocation(file: "accounts.lua", line: 2)]

  private static func bench(_ rule: RegistrationRule = .invited()) async throws -> EngineTestBench {
    try await EngineTestBench.full { $0.accounts = AccountRules(registration: rule, locations: Self.location) }
  }

  private static func rule(_ rule: RegistrationRule, on bench: EngineTestBench) throws {
    var generation = try #require(bench.generations.current as? TestGeneration)
    generation.id = "\(rule)"
    generation.accounts = AccountRules(registration: rule, locations: Self.location)
    bench.generations.activate(generation, at: bench.clock.now())
  }

  private static func administration(_ bench: EngineTestBench) -> AccountAdministration {
    AccountAdministration(
      store: bench.store, providers: bench.engine.providers, keys: bench.keys, clock: bench.clock,
      random: SystemRandom())
  }

  private static func invite(
    _ bench: EngineTestBench, _ named: Identifier? = nil, groups: [GroupName] = [],
    for lifetime: Duration = .seconds(600)
  ) async throws -> CreatedInvitation {
    try await Self.administration(bench).createInvitation(
      NewInvitation(identifier: named, groups: groups, lifetime: lifetime))
  }

  /// Begins a flow with an invitation, and has a code sent.
  private static func begun(
    _ bench: EngineTestBench, _ name: String = "register", _ provider: ProviderName = EngineTestBench.phone,
    to typed: String = "911111", by code: SecretText?
  ) async throws -> FlowID {
    let client = bench.client()
    let id = try await bench.engine.create(name, returnTo: nil, browser: nil, client: client.invited(by: code)).get().id
    _ = try await bench.engine.begin(
      id, provider: provider.rawValue, fields: ["phone": .text(typed)], client: client
    ).get()
    await bench.engine.deliveriesEnd()
    return id
  }

  private static func accounts(_ bench: EngineTestBench) async throws -> Int {
    try await bench.store.accounts(after: nil, limit: 10).count
  }

  private static func refusal(
    _ bench: EngineTestBench, creating name: String, by code: SecretText?
  ) async -> RefusalCode? {
    await bench.engine.create(name, returnTo: nil, browser: nil, client: bench.client().invited(by: code)).refusal?.code
  }

  /// Attack: a stranger registers without an invitation: by a flow for new accounts, by one for both, or by Google at
  /// the page that signs in.
  @Test func strangersNeedAnInvitation() async throws {
    let bench = try await Self.bench()
    for name in ["register", "register_email"] {
      #expect(await Self.refusal(bench, creating: name, by: nil) == .invitationRequired)
    }
    for name in ["login", "enter"] {
      let refusal = try await bench.google(name, sub: "stranger", by: bench.client()).refusal
      #expect(refusal?.code == .invitationRequired && refusal?.code.status == 403)
    }
    let id = try await bench.flow("enter")
    let refusal = await bench.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text("911111")], client: bench.client()
    ).refusal
    #expect(refusal?.code == .invitationRequired)
    #expect(bench.delivery.messages.isEmpty)
    #expect(try await Self.accounts(bench) == 0)
  }

  /// Attack: an answer that depends on whether the address has an account, before a code to it was entered.
  @Test func concealedUntilTheAddressIsVerified() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client())
    try Self.rule(.invited(), on: bench)
    var seen: [String] = []
    for (address, code) in [("911111", nil), ("933333", RefusalCode.invitationRequired)] {
      let id = try await Self.begun(bench, "enter", EngineTestBench.mail, to: address, by: nil)
      let wrong = await bench.engine.submit(id, fields: ["code": .text(bench.wrong)], client: bench.client()).refusal
      seen.append("\(wrong?.code.name ?? "") \(wrong?.attemptsLeft ?? -1)")
      #expect(await bench.submit(id, bench.code).refusal?.code == code)
    }
    #expect(seen[0] == seen[1])
    #expect(try await Self.accounts(bench) == 1)
  }

  @Test func oneAccountIsCreatedAndGetsTheGroups() async throws {
    let bench = try await Self.bench()
    let staff = try GroupName(test: "staff")
    let made = try await Self.invite(bench, groups: [staff])
    let first = try await Self.begun(bench, by: made.code)
    let view = try await bench.submit(first, bench.code).get()
    let account = try #require(try await bench.store.account(view.account?.id ?? ""))
    #expect(account.groups == [staff])
    #expect(try await bench.signedIn(view).account.groups == [staff])
    let used = try #require(try await bench.audit.events(limit: 20).first { $0.kind == .invitationUsed })
    #expect(used.account == account.id && used.detail["invitation"] == made.invitation.id)
    #expect(used.detail["groups"] == "staff")
    #expect(try await bench.store.events(about: account.id, traces: [], limit: 9).contains { $0.id == used.id })
    #expect(await Self.refusal(bench, creating: "register", by: made.code) == .invitationInvalid)
    #expect(try await Self.administration(bench).invitations(limit: 9).isEmpty)
  }

  /// Attack: two flows begin with one invitation, and complete one after the other or at the same moment.
  @Test(arguments: [true, false]) func anInvitationCreatesOneAccount(_ isAtOnce: Bool) async throws {
    let bench = try await Self.bench()
    let made = try await Self.invite(bench)
    let first = try await Self.begun(bench, to: "911111", by: made.code)
    let one = bench.code
    let second = try await Self.begun(bench, to: "922222", by: made.code)
    let two = bench.code
    var results: [RefusalCode?] = []
    if isAtOnce {
      async let a = bench.submit(first, one)
      async let b = bench.submit(second, two)
      results = [await a.refusal?.code, await b.refusal?.code]
    } else {
      results = [await bench.submit(first, one).refusal?.code, await bench.submit(second, two).refusal?.code]
    }
    #expect(results.filter { $0 == nil }.count == 1)
    #expect(results.filter { $0 == .invitationInvalid }.count == 1)
    #expect(try await Self.accounts(bench) == 1)
  }

  /// Attack: a flow is begun with an invitation, and completed after that was revoked or has expired.
  @Test(arguments: [true, false]) func revokedOrExpiredMeanwhile(_ isRevoked: Bool) async throws {
    let bench = try await Self.bench()
    let made = try await Self.invite(bench, for: .seconds(60))
    let id = try await Self.begun(bench, by: made.code)
    if isRevoked {
      #expect(try await Self.administration(bench).revokeInvitation(made.invitation.id) == .done)
      #expect(try await Self.administration(bench).revokeInvitation(made.invitation.id) == .unknown)
    } else {
      bench.clock.advance(by: .seconds(61))
    }
    let refusal = await bench.submit(id, bench.code).refusal
    #expect(refusal?.code == .invitationInvalid && refusal?.invitationProblem == (isRevoked ? .revoked : .expired))
    #expect(try await Self.accounts(bench) == 0)
    #expect(await Self.refusal(bench, creating: "register", by: made.code) == .invitationInvalid)
    let document = String(decoding: try #require(refusal).document(), as: UTF8.self)
    #expect(document.contains(isRevoked ? #""reason":"revoked""# : #""reason":"expired""#), "\(document)")
  }

  /// Attack: an invitation that was forwarded or read on its way is used with another address, or without any proof of
  /// the address that it names.
  @Test func anInvitationForOneAddressIsForNobodyElse() async throws {
    let bench = try await Self.bench()
    let named = Identifier(kind: .email, value: "+911111", display: "+911111")
    let made = try await Self.invite(bench, named)
    for (provider, typed) in [(EngineTestBench.mail, "922222"), (EngineTestBench.phone, "911111")] {
      let id = try await Self.begun(bench, "register", provider, to: typed, by: made.code)
      let refusal = await bench.submit(id, bench.code).refusal
      #expect(refusal?.code == .invitationInvalid && refusal?.invitationProblem == .otherRecipient)
      #expect(refusal?.sentence.contains("911111") == false)
    }
    // The code to the address cannot be skipped.
    let client = bench.client()
    let view = try await bench.secret(
      "register_email", ["email": "911111", "new_secret": "mine"], provider: "password",
      by: client.invited(by: made.code)
    ).get()
    #expect(await bench.engine.skip(view.id, client: client).refusal?.code == .stepNotOpen)
    #expect(try await Self.accounts(bench) == 0)
    _ = try await bench.engine.begin(
      view.id, provider: "email_code", fields: ["phone": .text("911111")], client: client
    ).get()
    await bench.engine.deliveriesEnd()
    #expect(try await bench.submit(view.id, bench.code).get().status == .complete)
    #expect(try await Self.accounts(bench) == 1)
  }

  /// Only the kind of identifier that a new account needs cannot be skipped: what the invitation names, or an address
  /// where `domains` needs no invitation.
  @Test func otherKindsCanBeSkipped() async throws {
    let bench = try await EngineTestBench.full { generation in
      generation.accounts = AccountRules(registration: .invited(), locations: Self.location)
      generation.flows["register_email"] = .test(
        "register_email", account: .new,
        steps: [
          .test("password"), .test(EngineTestBench.mail, isSkippable: true),
          .test(EngineTestBench.phone, isSkippable: true),
        ])
    }
    let made = try await Self.invite(bench, Identifier(kind: .email, value: "+911111", display: "+911111"))
    for code in [made.code, nil] {
      if code == nil { try Self.rule(.invited(domains: ["example.com"]), on: bench) }
      let client = bench.client()
      let id = try await bench.secret(
        "register_email", ["email": code == nil ? "922222" : "911111", "new_secret": "mine"], provider: "password",
        by: client.invited(by: code)
      ).get().id
      #expect(await bench.engine.skip(id, client: client).refusal?.code == .stepNotOpen)
      _ = try await bench.engine.begin(
        id, provider: "email_code", fields: ["phone": .text(code == nil ? "922222" : "911111")], client: client
      ).get()
      await bench.engine.deliveriesEnd()
      #expect(try await bench.submit(id, bench.code).get().status == .pending)
      let skipped = await bench.engine.skip(id, client: client)
      // The toy's address is of no domain.
      #expect(code != nil ? try skipped.get().status == .complete : skipped.refusal?.code == .invitationRequired)
    }
  }

  /// Without a name, an invitation lets its user skip the code to the address, as in open registration.
  @Test func anInvitationForAnybodyRequiresNoAddress() async throws {
    let bench = try await Self.bench()
    let made = try await Self.invite(bench)
    let client = bench.client()
    let view = try await bench.secret(
      "register_email", ["email": "911111", "new_secret": "mine"], provider: "password",
      by: client.invited(by: made.code)
    ).get()
    #expect(try await bench.engine.skip(view.id, client: client).get().status == .complete)
  }

  /// Attack: a user who has an account adds it to a group, opens it or changes it by an invitation, or uses up the
  /// invitation of somebody else.
  @Test func anAccountThatExistsGetsNothing() async throws {
    let bench = try await EngineTestBench.full()
    let known = try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())
    try Self.rule(.invited(), on: bench)
    let staff = try GroupName(test: "staff")
    let made = try await Self.invite(bench, groups: [staff])
    let entered = try await Self.begun(bench, "enter", by: made.code)
    #expect(try await bench.submit(entered, bench.code).get().account?.id == known.account?.id)
    #expect(try await bench.store.account(known.account?.id ?? "")?.groups == [])
    let id = try await bench.engine.create(
      "register", returnTo: nil, browser: nil, client: bench.client().invited(by: made.code)
    ).get().id
    let refused = await bench.engine.begin(
      id, provider: EngineTestBench.phone.rawValue, fields: ["phone": .text("911111")], client: bench.client()
    ).refusal
    #expect(refused?.code == .alreadyRegistered)
    let client = bench.client(session: try await bench.signedIn(known)).invited(by: made.code)
    #expect(try await bench.pass("change_email", EngineTestBench.mail, "933333", by: client).status == .complete)
    #expect(try await bench.store.account(known.account?.id ?? "")?.groups == [])
    #expect(try await Self.administration(bench).invitations(limit: 9) == [made.invitation])
  }

  @Test func closedRegistrationHonoursNone() async throws {
    let bench = try await Self.bench()
    let made = try await Self.invite(bench)
    let id = try await Self.begun(bench, by: made.code)
    try Self.rule(.closed, on: bench)
    #expect(await bench.submit(id, bench.code).refusal?.code == .registrationClosed)
    for name in ["register", "enter", "login"] {
      #expect(await Self.refusal(bench, creating: name, by: made.code) == .registrationClosed)
    }
    #expect(try await Self.accounts(bench) == 0)
    #expect(try await Self.administration(bench).invitations(limit: 9) == [made.invitation])
  }

  /// Attack: a victim opens the link of an invitation for somebody else, or of one that is revoked meanwhile, and
  /// cannot register any more, although everybody can, or users with an address of the domain.
  @Test(arguments: [RegistrationRule.open, .invited(domains: ["example.com"])])
  func anInvitationForSomebodyElseHindersNobody(_ rule: RegistrationRule) async throws {
    let bench = try await Self.bench(rule)
    let staff = try GroupName(test: "staff")
    let named = Identifier(kind: .phone, value: "+911111", display: "+911111")
    for isRevoked in [false, true] {
      let made = try await Self.invite(bench, isRevoked ? nil : named, groups: [staff])
      let client = bench.client().invited(by: made.code)
      let id = try await bench.engine.create("enter", returnTo: nil, browser: nil, client: client).get().id
      _ = try await bench.engine.begin(id, provider: "google_oauth", fields: [:], client: client).get()
      if isRevoked { _ = try await Self.administration(bench).revokeInvitation(made.invitation.id) }
      let address = "asha\(isRevoked)@example.com"
      let view = try await bench.engine.submit(
        id, fields: ["sub": .text(address), "email": .text(address), "verified": .text("true")], client: client
      ).get()
      #expect(try await bench.store.account(view.account?.id ?? "")?.groups == [])
      #expect(try await Self.administration(bench).invitations(limit: 9) == (isRevoked ? [] : [made.invitation]))
      _ = try await Self.administration(bench).revokeInvitation(made.invitation.id)
    }
    #expect(try await Self.accounts(bench) == 2)
  }

  /// While everybody can register, an invitation gives the groups, and no flow begins with one that is not valid.
  @Test func openRegistrationHonoursThem() async throws {
    let bench = try await EngineTestBench.full()
    let staff = try GroupName(test: "staff")
    let made = try await Self.invite(bench, groups: [staff])
    let id = try await Self.begun(bench, by: made.code)
    let view = try await bench.submit(id, bench.code).get()
    #expect(try await bench.store.account(view.account?.id ?? "")?.groups == [staff])
    #expect(await Self.refusal(bench, creating: "register", by: made.code) == .invitationInvalid)
  }

  /// Attack: guessed codes. A text that cannot be a code is refused without a read of the store. Without the code of an
  /// invitation, nobody learns what became of it.
  @Test func wrongCodesHaveOneAnswer() async throws {
    let bench = try await Self.bench()
    for text in ["", "mgi_", "mgi_" + String(repeating: "A", count: 43), String(repeating: "x", count: 4_096)] {
      for name in ["register", "enter"] {
        let client = bench.client().invited(by: SecretText(text))
        let refusal = await bench.engine.create(name, returnTo: nil, browser: nil, client: client).refusal
        #expect(refusal?.code == .invitationInvalid && refusal?.invitationProblem == nil)
      }
    }
    #expect(InvitationCode(text: "mgi_short") == nil)
    #expect(InvitationCode(from: SystemRandom()).secret.reveal().utf8.count == 47)
  }

  /// The code is neither in the store nor in the audit trail.
  @Test func theCodeIsShownOnce() async throws {
    let bench = try await Self.bench()
    let made = try await Self.invite(bench, Identifier(kind: .email, value: "+911111", display: "+911111"))
    _ = await Self.refusal(bench, creating: "register", by: made.code)
    let listed = try await Self.administration(bench).invitations(limit: 9)
    let events = try await bench.audit.events(limit: 20)
    #expect(events.contains { $0.kind == .invitationCreated && $0.detail["invitation"] == made.invitation.id })
    for text in ["\(listed)", "\(events)", "\(made)"] { #expect(!text.contains(made.code.reveal()), "\(text)") }
    #expect(events.allSatisfy { !"\($0)".contains("+911111") })
  }

  /// Attack: an address of a subdomain, one that contains the domain elsewhere, or another kind of identifier that is
  /// spelled like an address.
  @Test func onlyVerifiedAddressesOfTheDomainCount() {
    let rule = RegistrationRule.invited(domains: ["example.com", "xn--bcher-kva.example"])
    let address = { (text: String) in EmailAddress(text).map { Identifier($0) } }
    for text in ["asha@example.com", "Asha@EXAMPLE.com", "asha@bücher.example"] {
      #expect(rule.refusal(ofNew: [address(text)].compactMap(\.self), isInvited: false) == nil, "\(text)")
    }
    for text in ["asha@sub.example.com", "asha@example.com.evil.test", "asha@evilexample.com", "example.com@evil.test"]
    {
      let found = [address(text)].compactMap(\.self)
      #expect(found.count == 1 && rule.refusal(ofNew: found, isInvited: false) == .invitationRequired, "\(text)")
      #expect(rule.refusal(ofNew: found, isInvited: true) == nil)
    }
    let odd = Identifier(kind: .federated, value: "asha@example.com", display: "asha@example.com")
    #expect(rule.refusal(ofNew: [odd], isInvited: false) == .invitationRequired)
    #expect(rule.refusal(ofNew: [], isInvited: false) == .invitationRequired)
    #expect(rule.refusal(of: .new, isInvited: false) == nil, "the address is known only later")
    #expect(RegistrationRule.invited().refusal(of: .any, isInvited: false) == nil)
  }

  /// A user who has verified an address of the domain in an earlier step adds a number to the new account. Attack: the
  /// same with an address of another domain, or with one that is only claimed.
  @Test func anEarlierStepVerifiesTheAddress() async throws {
    let bench = try await EngineTestBench.full { generation in
      generation.accounts = AccountRules(registration: .invited(domains: ["example.com"]), locations: Self.location)
      generation.flows["both"] = .test(
        "both", account: .any, steps: [.test(EngineTestBench.google), .test(EngineTestBench.phone)])
    }
    for (address, isVerified) in [("asha@example.com", false), ("asha@evil.test", true), ("asha@example.com", true)] {
      let view = try await bench.google(
        "both", sub: address, email: address, verified: isVerified, by: bench.client()
      ).get()
      #expect(view.status == .pending)
      let begun = await bench.begin(view.id, phone: "911111")
      if isVerified, address.hasSuffix("example.com") {
        _ = try begun.get()
        #expect(try await bench.submit(view.id, bench.code).get().account?.isNewUser == true)
      } else {
        #expect(begun.refusal?.code == .invitationRequired)
      }
    }
    #expect(try await Self.accounts(bench) == 1)
  }

  @Test(
    arguments: [
      ("asha@example.com", ["staff"], "3d", nil), (nil, [], nil, nil), ("+919999", [], "1m", nil),
      ("asha", [], nil, "recipient"), (nil, ["computed"], nil, "groups"), (nil, ["unknown"], nil, "groups"),
      (nil, [], "59s", "expires"), (nil, [], "91d", "expires"), (nil, [], "soon", "expires"),
    ] as [(String?, [String], String?, String?)])
  func inputOfOperators(_ recipient: String?, _ groups: [String], _ expires: String?, _ wrong: String?) async throws {
    let bench = try await Self.bench()
    var generation = try #require(bench.generations.current as? TestGeneration)
    generation.accounts.groups = [
      try GroupName(test: "staff"): .members, try GroupName(test: "computed"): .computed(FunctionName("g")),
    ]
    let administration = Self.administration(bench)
    do throws(OperatorInputProblem) {
      let wanted = try administration.newInvitation(for: recipient, groups: groups, expires: expires, generation)
      #expect(wrong == nil && wanted.groups.count == groups.count && (wanted.identifier == nil) == (recipient == nil))
    } catch {
      #expect(error.field == wrong, "\(error)")
    }
  }

  @Test func decisionNamesTheSetting() async throws {
    let bench = try await Self.bench()
    let refusal = try await bench.google("enter", sub: "stranger", by: bench.client()).refusal
    let decision = try #require(refusal?.decision)
    let event = try #require(try await bench.audit.events(limit: 10).first { $0.id == decision })
    #expect(event.detail["rule"] == "registration" && event.detail["at"] == "accounts.lua:2", "\(event.detail)")
  }

  /// A candidate that requires invitations differs where a user without one would be refused.
  @Test func shadowSeesWhoWouldBeRefused() async throws {
    let bench = try await EngineTestBench.full()
    var candidate = try #require(bench.generations.current as? TestGeneration)
    candidate.id = "candidate"
    candidate.accounts = AccountRules(registration: .invited(), locations: Self.location)
    let made = try await Self.invite(bench)
    bench.shadow.begin(candidate, folder: "/candidate", by: "asha", at: bench.clock.now())
    _ = try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())
    _ = try await bench.google(sub: "asha", by: bench.client()).get()
    let id = try await Self.begun(bench, to: "922222", by: made.code)
    _ = try await bench.submit(id, bench.code).get()
    var judge: ShadowJudge?
    while await bench.shadow.look(nil, &judge) {}
    let differences = try #require(bench.shadow.status).tally.differences.map { cause, difference in
      "\(difference.count) × \(cause.about): \(cause.candidate) by \(cause.rule ?? "")"
    }.sorted()
    #expect(
      differences == [
        "1 × flow register: invitation_required by accounts.lua:2",
        "1 × registration by login: invitation_required by accounts.lua:2",
        "1 × registration by register: invitation_required by accounts.lua:2",
      ], "\(differences)")
  }
}
