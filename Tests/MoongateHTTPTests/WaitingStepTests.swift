import HTTPTypes
import MoongateCore
import MoongateHTTP
import MoongateSDK
import MoongateTesting
import PhoneOTP
import TOTP
import Testing

/// Steps of two rounds: the app's code was right, and the recovery codes are shown while another flow changes the app.
/// The record against which the code was checked must still be the current one.
@Suite struct WaitingStepTests {
  private static let totp: ProviderName = "totp"

  private func run(_ body: @escaping @Sendable (Person) async throws -> Void) async throws {
    let gateway = try HTTPGateway(providers: [PhoneOTP(), TOTP()]) { generation in
      for name in ["totp_set", "totp_change", "totp_disable", "step_up"] {
        generation.flows[name] = .test(name, account: .existing, steps: [.test(Self.totp)])
      }
      generation.flows["register"] = .test("register", account: .new, steps: [.test("phone_otp")])
      generation.policies[Self.totp] = .test(
        Self.totp,
        limits: [.test("verify", on: .verify, per: .account, max: 20, window: .seconds(86_400), lock: [.seconds(60)])],
        unknownAccount: .conceal)
    }
    try await gateway.run { client in try await body(try await Person(client)) }
  }

  /// A person signed in over the API.
  private final class Person {
    let client: Client
    private var token: String

    init(_ client: Client) async throws {
      self.client = client
      token = try await client.register().token
    }

    /// Opens a flow at the app's step; also returns the app if the step shows a secret.
    func open(_ flow: String) async throws -> (id: String, app: AuthenticatorApp?, answer: Answer) {
      let id = try #require(try await call("", #"{"flow":"\#(flow)"}"#)["id"] as? String)
      let answer = try await begin(id)
      let shown = (answer["step"] as? [String: Any])?["show"] as? [[String: Any]] ?? []
      let secret = shown.first { $0["kind"] as? String == "secret" }?["text"] as? String
      return (id, secret.flatMap(AuthenticatorApp.init), answer)
    }

    func begin(_ id: String) async throws -> Answer { try await call("/\(id)/begin", #"{"provider":"totp"}"#) }

    func submit(_ id: String, code: String? = nil) async throws -> Answer {
      try await call("/\(id)/submit", code.map { #"{"code":"\#($0)"}"# } ?? "{}")
    }

    /// Submits a code in a new flow of this name.
    func tries(_ flow: String, _ code: String) async throws -> Answer {
      try await submit(try await open(flow).id, code: code)
    }

    /// The current code, after advancing the clock to the next time step.
    func next(_ app: AuthenticatorApp) -> String {
      client.gateway.clock.advance(by: .seconds(30))
      return app.code(at: client.gateway.clock.now())
    }

    /// Sets up an app completely.
    func setUp() async throws -> AuthenticatorApp {
      let (id, app, _) = try await open("totp_set")
      let made = try #require(app)
      #expect(try await submit(id, code: next(made))["status"] as? String == "pending")
      #expect(try await submit(id)["status"] as? String == "complete")
      return made
    }

    private func call(_ path: String, _ json: String) async throws -> Answer {
      let answer = try await client.call(
        .post, "/api/auth/flows" + path, json, headers: [("Authorization", "Bearer \(token)")])
      if let session = answer["session"] as? [String: Any], let fresh = session["token"] as? String { token = fresh }
      return answer
    }
  }

  /// Attack: a thief with a stolen session waits at the recovery codes until the owner has set up an app, and then
  /// replaces it.
  @Test func waitingStepDoesNotReplaceAnAppThatWasSetUpMeanwhile() async throws {
    try await run { person in
      let waiting = try await person.open("totp_set")
      let stray = try #require(waiting.app)
      #expect(try await person.submit(waiting.id, code: person.next(stray))["status"] as? String == "pending")
      let app = try await person.setUp()
      let late = try await person.submit(waiting.id)
      #expect(late.problem() == "step_up_required", "\(late)")
      #expect(try await person.tries("step_up", person.next(stray)).problem() == "invalid_code")
      #expect(try await person.tries("step_up", person.next(app))["status"] as? String == "complete")
    }
  }

  /// Attack: one code is used for new recovery codes and for a step-up; completing the first then restores the older
  /// record, and the code is used again.
  @Test func waitingStepDoesNotMakeAUsedCodeValidAgain() async throws {
    try await run { person in
      let app = try await person.setUp()
      let change = try await person.open("totp_change").id
      let code = person.next(app)
      #expect(try await person.submit(change, code: code)["status"] as? String == "pending")
      #expect(try await person.tries("step_up", code)["status"] as? String == "complete")
      #expect(try await person.submit(change).problem() == "step_not_open")
      #expect(try await person.tries("step_up", code).problem() == "code_used")
    }
  }

  /// Attack: a waiting step restores an app that its owner has removed because the phone was stolen.
  @Test func waitingStepDoesNotRestoreARemovedApp() async throws {
    try await run { person in
      let app = try await person.setUp()
      let change = try await person.open("totp_change").id
      #expect(try await person.submit(change, code: person.next(app))["status"] as? String == "pending")
      #expect(try await person.tries("totp_disable", person.next(app))["status"] as? String == "complete")
      #expect(try await person.submit(change).problem() == "flow_expired")
      #expect(try await person.open("step_up").answer.problem() == "not_set_up")
    }
  }

  /// A step that is begun again is checked against the current record.
  @Test func restartedStepUsesTheCurrentRecord() async throws {
    try await run { person in
      let app = try await person.setUp()
      let change = try await person.open("totp_change").id
      #expect(try await person.submit(change, code: person.next(app))["status"] as? String == "pending")
      #expect(try await person.tries("step_up", person.next(app))["status"] as? String == "complete")
      #expect(try await person.submit(change).problem() == "step_not_open")
      _ = try await person.begin(change)
      #expect(try await person.submit(change, code: person.next(app))["status"] as? String == "pending")
      #expect(try await person.submit(change)["status"] as? String == "complete")
    }
  }

  /// The text for a factor that is already set used to mention a passcode for every factor.
  @Test func alreadySetFactorIsNamed() async throws {
    try await run { person in
      let waiting = try await person.open("totp_set").id
      let app = try await person.setUp()
      for late in [try await person.submit(waiting, code: person.next(app)), try await person.open("totp_set").answer] {
        #expect(late.problem() == "already_set")
        #expect(late.detail == "An authenticator app is already set up for this account.")
      }
    }
  }
}
