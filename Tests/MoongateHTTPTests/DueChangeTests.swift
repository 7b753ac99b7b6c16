import Crypto
import EmailCode
import Foundation
import HTTPTypes
import MoongateCore
import MoongateDelivery
import MoongateSDK
import MoongateStore
import MoongateTesting
import Password
import PhoneOTP
import Testing

/// Passwords that an account may not keep: known from a data breach, or imported with a weak hash.
@Suite struct DueChangeTests {
  private static let address = "ada@example.com"
  /// The password of all imported accounts.
  private static let password = "correct horse"
  private static let salted = "{SSHA}45t+zCEyMYRqQvOJu7mAKpQLKklC9sfq"
  private static let weak = "$1$abcdefgh$y6iHhJNbuC0xpbk0w9pm80"

  private let folder: ScratchFolder
  private let list: String

  init() throws {
    folder = try ScratchFolder()
    list = folder.path("list.txt")
    let hash = Insecure.SHA1.hash(data: Data(Self.password.utf8)).map { String(format: "%02X", $0) }.joined()
    try Data("\(hash):17\n".utf8).write(to: URL(fileURLWithPath: list))
  }

  /// - Parameter refuse: whether a leaked password must be replaced; nil: nothing is looked up.
  private func gateway(refuse: Bool? = nil, store: (any Store)? = nil) throws -> HTTPGateway {
    let list = list
    return try HTTPGateway(providers: [PhoneOTP(), EmailCode(), Password()], store: store) { generation in
      let flows: [FlowDefinition] = [
        .test("login", account: .existing, steps: [.test("phone_otp", "email_code")]),
        .test("login_password", account: .existing, steps: [.test("password")]),
        .test("register_email", account: .new, steps: [.test("password"), .test("email_code", isSkippable: true)]),
        .test("password_reset", account: .existing, steps: [.test("email_code"), .test("password")]),
        .test("step_up", account: .existing, steps: [.test("password", "email_code")]),
      ]
      generation.flows = Dictionary(uniqueKeysWithValues: flows.map { ($0.name, $0) })
      for name in ["email_code", "password"] as [ProviderName] {
        generation.policies[name] = .test(name, unknownAccount: .conceal)
      }
      if let refuse {
        generation.gateway.providers["password"]?.values = [
          "breached": .text(list), "breached.refuse": .flag(refuse),
        ]
      }
    }
  }

  private func add(_ hash: String, isVerified: Bool = true, to gateway: TestGateway) async throws -> String {
    let email = Identifier(try #require(EmailAddress(Self.address)))
    var account = ImportedAccount(identifiers: [ImportedAccount.Name(identifier: email, isVerified: isVerified)])
    account.records["password"] = ProviderRecord(bytes: Array(hash.utf8), version: 1)
    #expect(try await gateway.administration.add([account]).isEmpty)
    return try #require(try await gateway.store.accounts(naming: email).first?.id)
  }

  /// Begins a flow with its first step.
  private func begin(_ client: Client, _ flow: String, _ fields: String, after pause: Duration = .seconds(100))
    async throws -> (id: String, answer: Answer)
  {
    let created = try await client.call(.post, "/api/auth/flows", #"{"flow":"\#(flow)"}"#)
    let id = try #require(created["id"] as? String)
    client.gateway.clock.advance(by: pause)
    return (id, try await client.call(.post, "/api/auth/flows/\(id)/begin", fields))
  }

  private func signIn(_ client: Client, _ password: String = Self.password) async throws -> (
    id: String, answer: Answer
  ) {
    try await begin(
      client, "login_password", #"{"provider":"password","email":"\#(Self.address)","password":"\#(password)"}"#)
  }

  private func submit(_ client: Client, _ id: String, _ fields: String) async throws -> Answer {
    try await client.call(.post, "/api/auth/flows/\(id)/submit", fields)
  }

  private func kinds(_ client: Client) async throws -> [AuditEvent.Kind] {
    try await client.gateway.audit.flush()
    return try await client.gateway.store.events(limit: 100).map(\.kind)
  }

  // MARK: - Weak hashes

  /// Attack: someone finds out the password by the MD5 of the old system, sets another one and locks the owner out.
  @Test func aWeakHashIsReplacedAfterSomethingElseWasProved() async throws {
    try await gateway().run { client in
      let account = try await add(Self.weak, to: client.gateway)
      #expect(try await client.gateway.store.account(account)?.dueChanges == ["password": .weak])
      let (id, begun) = try await signIn(client)
      #expect(begun["status"] as? String == "pending" && begun["choices"] as? [String] == ["email_code"])
      #expect(begun["session"] is NSNull && begun["change_due"] == nil)
      // Attack: the step that follows is begun at once.
      let early = #"{"provider":"password","password":"another horse 42"}"#
      #expect(try await client.call(.post, "/api/auth/flows/\(id)/begin", early).status != 200)
      _ = try await client.call(.post, "/api/auth/flows/\(id)/begin", #"{"provider":"email_code"}"#)
      let code = try #require(client.gateway.code(for: Self.address))
      let due = try await submit(client, id, #"{"code":"\#(code)"}"#)
      #expect(due["change_due"] as? String == "weak" && due["choices"] as? [String] == ["password"])
      #expect(due["session"] is NSNull)
      // Attack: the same password again.
      let same = try await client.call(
        .post, "/api/auth/flows/\(id)/begin", #"{"provider":"password","password":"\#(Self.password)"}"#)
      #expect(same.problem() == "weak_password" && same.detail == "This is your current password. Choose another.")
      let skipped = try await client.call(.post, "/api/auth/flows/\(id)/skip", "{}")
      #expect(skipped.status != 200)
      let done = try await client.call(
        .post, "/api/auth/flows/\(id)/begin", #"{"provider":"password","password":"another horse 42"}"#)
      #expect(done["status"] as? String == "complete" && done["change_due"] == nil, "\(done.text)")
      #expect(try await client.gateway.store.account(account)?.dueChanges == [:])
      #expect(try await kinds(client).contains(.factorChanged))

      #expect(try await signIn(client).answer.problem() == "invalid_password")
      #expect(try await signIn(client, "another horse 42").answer["status"] as? String == "complete")
    }
  }

  @Test func withoutAnythingElseThePasswordSuffices() async throws {
    try await gateway().run { client in
      let account = try await add(Self.weak, isVerified: false, to: client.gateway)
      let (id, begun) = try await signIn(client)
      #expect(begun["change_due"] as? String == "weak" && begun["choices"] as? [String] == ["password"])
      let done = try await client.call(
        .post, "/api/auth/flows/\(id)/begin", #"{"provider":"password","password":"another horse 42"}"#)
      #expect(done["status"] as? String == "complete", "\(done.text)")
      // The old password was proved, so the new one is not newer than it.
      #expect(try await client.gateway.store.account(account)?.resets == [:])
    }
  }

  /// Attack: the account is opened by another provider, or by the calls for apps, and keeps its password.
  @Test func noOtherWayGoesAroundTheChange() async throws {
    try await gateway().run { client in
      let account = try await add(Self.weak, to: client.gateway)
      let app = try await client.call(
        .post, "/api/auth/login", #"{"email":"\#(Self.address)","password":"\#(Self.password)"}"#)
      #expect(app.problem() == "step_up_required" && app["token"] == nil && app["flow_id"] is String)

      let (id, begun) = try await begin(client, "login", #"{"provider":"email_code","email":"\#(Self.address)"}"#)
      #expect(begun.status == 200, "\(begun.text)")
      let code = try #require(client.gateway.code(for: Self.address))
      let due = try await submit(client, id, #"{"code":"\#(code)"}"#)
      #expect(due["change_due"] as? String == "weak" && due["session"] is NSNull)
      let done = try await client.call(
        .post, "/api/auth/flows/\(id)/begin", #"{"provider":"password","password":"another horse 42"}"#)
      #expect(done["status"] as? String == "complete", "\(done.text)")
      // A code alone has authorised the new password, which proves no more than the code for now.
      #expect(try await client.gateway.store.account(account)?.resets.keys.map(\.rawValue) == ["password"])
    }
  }

  @Test func aResetReplacesIt() async throws {
    try await gateway().run { client in
      let account = try await add(Self.weak, to: client.gateway)
      let (id, _) = try await begin(
        client, "password_reset", #"{"provider":"email_code","email":"\#(Self.address)"}"#)
      let code = try #require(client.gateway.code(for: Self.address))
      // Attack: the same password again.
      let same = try await submit(client, id, #"{"code":"\#(code)","password":"\#(Self.password)"}"#)
      #expect(same.problem() == "weak_password")
      let done = try await submit(client, id, #"{"password":"another horse 42"}"#)
      #expect(done["status"] as? String == "complete", "\(done.text)")
      #expect(try await client.gateway.store.account(account)?.dueChanges == [:])
      #expect(try await signIn(client, "another horse 42").answer["status"] as? String == "complete")
    }
  }

  /// A sign-in with the old password demands another one, just before a reset stores one.
  @Test func aResetMeetsADemandThatIsMadeMeanwhile() async throws {
    try await gateway(store: DemandingStore(try SQLiteStore.memory())).run { client in
      let account = try await add(Self.salted, to: client.gateway)
      let (id, _) = try await begin(
        client, "password_reset", #"{"provider":"email_code","email":"\#(Self.address)"}"#)
      let code = try #require(client.gateway.code(for: Self.address))
      let done = try await submit(client, id, #"{"code":"\#(code)","password":"another horse 42"}"#)
      #expect(done["status"] as? String == "complete", "\(done.text)")
      #expect(try await client.gateway.store.account(account)?.dueChanges == [:])
    }
  }

  @Test func aSaltedHashIsKept() async throws {
    try await gateway(refuse: nil).run { client in
      let account = try await add(Self.salted, to: client.gateway)
      #expect(try await client.gateway.store.account(account)?.dueChanges == [:])
      let done = try await signIn(client).answer
      #expect(done["status"] as? String == "complete" && done["exposed"] == nil)
    }
  }

  // MARK: - Data breaches

  @Test func aLeakedPasswordIsReported() async throws {
    try await gateway(refuse: false).run { client in
      let account = try await add(Self.salted, to: client.gateway)
      for _ in 1...2 {
        let done = try await signIn(client).answer
        #expect(done["status"] as? String == "complete" && done["exposed"] as? [String] == ["password"])
      }
      await client.gateway.engine.deliveriesEnd()
      let notices = client.gateway.outbox.entries.map(\.message).filter { $0.text.contains("data breach") }
      #expect(notices.count == 1 && notices[0].to == Self.address, "once a week")
      let events = try await kinds(client)
      #expect(events.count { $0 == .secretExposed } == 2)
      #expect(try await client.gateway.store.account(account)?.dueChanges == [:])
      // A wrong password is not looked up, whether or not it is in the list.
      for password in ["correct hors", "wrong one"] { _ = try await signIn(client, password) }
      #expect(try await kinds(client).count { $0 == .secretExposed } == 2)
    }
  }

  /// Attack: the demand is evaded by leaving the flow and signing in again while the list cannot be read.
  @Test func theDemandOutlivesTheList() async throws {
    try await gateway(refuse: true).run { client in
      let account = try await add(Self.salted, to: client.gateway)
      let (_, begun) = try await signIn(client)
      #expect(begun["status"] as? String == "pending" && begun["choices"] as? [String] == ["email_code"])
      #expect(try await client.gateway.store.account(account)?.dueChanges == ["password": .breached])
      try FileManager.default.removeItem(atPath: list)
      let (id, again) = try await signIn(client)
      #expect(again["status"] as? String == "pending" && again["session"] is NSNull)
      _ = try await client.call(.post, "/api/auth/flows/\(id)/begin", #"{"provider":"email_code"}"#)
      let code = try #require(client.gateway.code(for: Self.address))
      let due = try await submit(client, id, #"{"code":"\#(code)"}"#)
      #expect(due["change_due"] as? String == "breached")
      let done = try await client.call(
        .post, "/api/auth/flows/\(id)/begin", #"{"provider":"password","password":"another horse 42"}"#)
      #expect(done["status"] as? String == "complete" && done["exposed"] == nil, "\(done.text)")
      #expect(try await kinds(client).contains(.secretUnchecked), "the new password could not be looked up")
    }
  }

  /// Attack: the answer about a leaked password tells whether the address has an account.
  @Test func aNewLeakedPasswordIsRefusedForEverybody() async throws {
    try await gateway(refuse: false).run { client in
      _ = try await add(Self.salted, to: client.gateway)
      var answers: [[String: String]] = []
      for address in [Self.address, "nobody@example.com"] {
        let (_, answer) = try await begin(
          client, "register_email",
          #"{"provider":"password","email":"\#(address)","password":"\#(Self.password)","first_name":"A","last_name":"B"}"#
        )
        #expect(answer.problem() == "weak_password" && answer["field"] as? String == "password")
        #expect(answer.detail == "This password is known from a data breach. Choose another.")
        answers.append(answer.json.filter { $0.key != "decision_id" }.mapValues { "\($0)" })
      }
      #expect(answers[0] == answers[1])
    }
  }

  /// Beside a code, it is refused before the code is compared: whether that is right or not, and without using it up.
  @Test func aLeakedPasswordBesideACodeIsRefusedFirst() async throws {
    try await gateway(refuse: false).run { client in
      _ = try await add(Self.salted, to: client.gateway)
      let (id, _) = try await begin(
        client, "password_reset", #"{"provider":"email_code","email":"\#(Self.address)"}"#)
      let code = try #require(client.gateway.code(for: Self.address))
      let wrong = String(code.dropLast()) + (code.hasSuffix("0") ? "1" : "0")
      for typed in [wrong, code] {
        let leaked = try await submit(client, id, #"{"code":"\#(typed)","password":"\#(Self.password)"}"#)
        #expect(leaked.problem() == "weak_password")
      }
      let done = try await submit(client, id, #"{"code":"\#(code)","password":"another horse 42"}"#)
      #expect(done["status"] as? String == "complete", "\(done.text)")
    }
  }

  /// Attack: someone makes the gateway ask a service without end. Beyond the limit, passwords are taken unchecked.
  @Test func lookupsOfOneClientAreLimited() async throws {
    try await gateway(refuse: false).run { client in
      var refused = 0
      for number in 0..<70 {
        let (_, answer) = try await begin(
          client, "register_email",
          #"{"provider":"password","email":"a\#(number)@example.com","password":"\#(Self.password)","first_name":"A","last_name":"B"}"#,
          after: .seconds(1))
        if answer.status == 422 { refused += 1 }
      }
      #expect(refused == 60)
    }
  }

  // MARK: - Pages

  @Test func thePageOffersAnotherPassword() async throws {
    try await gateway(refuse: false).run { client in
      _ = try await add(Self.salted, to: client.gateway)
      let browser = Browser(client)
      try await browser.visit("/auth/login?with=email")
      let done = try await browser.submit(["email": Self.address, "password": Self.password])
      let offer = try #require(done.header("Location"))
      #expect(offer.hasPrefix("/auth/login?") && offer.contains("with=reset") && offer.contains("offer=1"))
      let page = try await browser.visit(offer)
      #expect(page.text.contains("Choose a new password") && page.text.contains("known from a data breach"))
      #expect(page.text.contains("Skip for now"))
      // Attack: a forged address tells the user of a data breach.
      for forged in ["offer=1", "offer=1&exposed=se_none"] {
        let page = try await browser.visit("/auth/login?with=reset&\(forged)")
        #expect(page.status == 200 && !page.text.contains("data breach"))
      }
    }
  }

  @Test func thePageDemandsAnotherPassword() async throws {
    try await gateway(refuse: true).run { client in
      _ = try await add(Self.salted, to: client.gateway)
      let browser = Browser(client)
      try await browser.visit("/auth/login?with=email")
      let sent = try await browser.submit(["email": Self.address, "password": Self.password])
      try await browser.visit(try #require(sent.header("Location")))
      let code = try #require(client.gateway.code(for: Self.address))
      let due = try await browser.submit(["code": code])
      let page = try await browser.visit(try #require(due.header("Location")))
      #expect(page.text.contains("known from a data breach") && page.text.contains("New password"))
      #expect(browser.cookies["moongate"] == nil)
      let refused = try await browser.submit(["password": Self.password])
      #expect(refused.text.contains("This password is known from a data breach. Choose another."))
      #expect(refused.text.contains("so you need another one"), "the page still says why")
      _ = try await browser.submit(["password": "another horse 42"])
      #expect(browser.cookies["moongate"] != nil)
    }
  }
}

/// A store in which a secret is demanded to change just before another one is stored.
private final class DemandingStore: ForwardingStore {
  private let inner: any Store

  init(_ inner: any Store) { self.inner = inner }

  func store(for call: String) -> any Store { inner }

  func reserve(_ request: ReservationRequest) async throws(StoreFault) -> ReservationResult {
    try await inner.reserve(request)
  }

  func apply(_ changes: [Change], reading query: LedgerQuery?, at now: Timestamp) async throws(StoreFault)
    -> ApplyResult
  {
    for case .putProviderRecord(let account, let provider, _) in changes {
      _ = try await inner.apply([.setDueChange(account: account, provider, .breached)], at: now)
    }
    return try await inner.apply(changes, reading: query, at: now)
  }
}
