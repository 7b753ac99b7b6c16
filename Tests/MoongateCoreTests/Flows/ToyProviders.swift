import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// A provider with a stored secret, which can do everything that a PIN or password can. `weak` is refused as too weak,
/// and `broken` makes it throw. Its record is the secret.
struct ToySecret: FullProvider {
  struct Broken: Error {}

  let name: ProviderName
  var hashes = false
  /// Whether it identifies users by a name too.
  var takesNames = false

  private static let old = InputField(name: "secret", kind: .text)
  private static let new = InputField(name: "new_secret", kind: .text)
  private static let firstName = InputField(name: "first_name", kind: .text, isRequired: false)

  var descriptor: ProviderDescriptor {
    ProviderDescriptor(
      name: name,
      beginFields: [InputField(name: "email", kind: .text, isRequired: false)] + (takesNames ? [.userName] : []),
      submitFields: [Self.old, InputField(name: "new_secret", kind: .text, isRequired: false), Self.firstName],
      settings: [],
      policy: PolicySource(file: "toy.lua", text: ""),
      identifierKinds: name.rawValue == "password" ? [.email] + (takesNames ? [.name] : []) : [],
      hashesSecrets: hashes,
      outcomes: [
        Outcome(.invalidPIN, "Wrong."), Outcome(.noPIN, "There is none.", isFailure: false),
        Outcome(.alreadySet, "There is one.", isFailure: false),
      ],
      words: StepWords(
        title: "Secret",
        notices: name.rawValue == "password"
          ? [.change: FactorNotice(subject: "Password changed", event: "The password on your account was changed")]
          : [:]))
  }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? {
    if takesNames, try input.optionalText("name") != nil { return try input.userName() }
    return try input.optionalText("email").map {
      Identifier(kind: .email, value: "+" + $0.filter(\.isNumber), display: $0)
    }
  }

  func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
    guard step.purpose == .set || step.purpose == .change, let new = try input.optionalText("new_secret") else {
      return
    }
    let isOwn = step.account?.names.contains(new) ?? false
    if new == "weak" || isOwn { throw InputProblem(field: "new_secret", reason: .weakPIN, detail: "too weak") }
  }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    switch step.purpose {
    case .set: .ask(step.flowPurpose == .register ? [Self.new, Self.firstName] : [Self.new], state: [1, 2, 3])
    case .change: .ask([Self.old, Self.new], state: [])
    case .prove, .disable: .ask([Self.old], state: [])
    }
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    if hashes, step.tools.hasher == nil { throw Broken() }
    let record = step.account?.record
    if step.purpose == .set {
      guard step.state == [1, 2, 3] else { throw Broken() }
      if record != nil, step.flow == "pin_set" { return .refused(.alreadySet) }
      return .proved(
        Proof(
          claimed: [step.identifier].compactMap(\.self), firstName: try input.optionalText("first_name"),
          record: .replace(Array(try input.text("new_secret").utf8))))
    }
    let typed = try input.text("secret")
    if typed == "broken" { throw Broken() }
    if record == nil, name.rawValue == "pin" { return .refused(.noPIN) }
    guard let record, record == Array(typed.utf8) else { return .refused(.invalidPIN) }
    return switch step.purpose {
    case .change: .proved(Proof(record: .replace(Array(try input.text("new_secret").utf8))))
    case .disable: .proved(Proof(record: .remove))
    case .prove, .set: .proved(Proof())
    }
  }
}

/// A federated provider: the fields of `submit` tell who came back.
struct ToyGoogle: FullProvider {
  var descriptor: ProviderDescriptor {
    ProviderDescriptor(
      name: EngineTestBench.google, beginFields: [],
      submitFields: ["sub", "email", "verified", "attested", "groups", "floor", "said", "site"].map {
        InputField(name: $0, kind: .text, isRequired: false)
      }, settings: [],
      policy: PolicySource(file: "toy.lua", text: ""), identifierKinds: [.federated, .email],
      outcomes: [Outcome(.oauthCancelled, "Cancelled.", isFailure: false)], mapsClaims: true)
  }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .redirect(
      to: "https://google.example/?state=\(step.callback?.state ?? "")&to=\(step.callback?.address ?? "")",
      state: Array("nonce".utf8))
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    guard step.state == Array("nonce".utf8), let sub = try input.optionalText("sub") else {
      return .refused(.oauthCancelled)
    }
    let email = try input.optionalText("email").map { Identifier(kind: .email, value: "+" + $0, display: $0) }
    let isVerified = input.fields["verified"] == .text("true")
    let isAttested = input.fields["attested"] == .text("true")
    var groups = try input.optionalText("groups").map(Self.groups) ?? []
    // What the site said, for the function `identity`.
    if let said = try input.optionalText("said"), let mapped = try await step.tools.identity(["said": .text(said)]) {
      groups = mapped.groups
    }
    let floor = try input.optionalText("floor").map { ["floor": $0] } ?? [:]
    return .proved(
      Proof(
        proved: [
          Identifier(
            kind: .federated, value: "https://google.example \(sub)", display: sub, attributes: floor, groups: groups)
        ]
          + (isVerified && !isAttested ? [email].compactMap(\.self) : []),
        attested: isVerified && isAttested ? [email].compactMap(\.self) : [],
        claimed: isVerified ? [] : [email].compactMap(\.self), firstName: "Asha", lastName: "Rao",
        siteSession: try input.optionalText("site")))
  }
}

extension ToyGoogle {
  /// The groups of a text: names separated by commas, or `*500x120` for 500 names of 120 letters and a number.
  static func groups(_ text: String) -> [String] {
    let numbers = text.dropFirst().split(separator: "x").compactMap { Int($0) }
    guard text.hasPrefix("*"), numbers.count == 2 else { return text.split(separator: ",").map(String.init) }
    return (0..<numbers[0]).map { "\($0)-" + String(repeating: "x", count: numbers[1]) }
  }
}

/// Hands out a fixed number of permits, without threads.
final class CountedPermits: HashingPermits {
  private struct NoHasher: SecretHasher {
    func hash(_ secret: [UInt8]) async throws -> String { "" }
    func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict { .wrong }
  }

  private let left: Mutex<Int>

  init(_ places: Int) { left = Mutex(places) }

  func acquirePermit(for address: [UInt8], salt: [UInt8]?) async -> (any SecretHasher)? {
    left.withLock { left in
      guard left > 0 else { return nil }
      left -= 1
      return NoHasher()
    }
  }
}

extension EngineTestBench {
  /// A bench with a PIN, a password and Google, and with flows for signing in, registering, stepping up and changing an
  /// account.
  static func full(
    hashing: any HashingPermits = UnavailableHashing(), hashes: Bool = false, takesNames: Bool = false,
    languages: any MessageLanguages = EnglishMessages(),
    _ change: (inout TestGeneration) -> Void = { _ in }
  )
    async throws
    -> EngineTestBench
  {
    try await EngineTestBench(
      others: [
        ToySecret(name: pin, hashes: hashes), ToySecret(name: "password", hashes: hashes, takesNames: takesNames),
        ToyGoogle(),
      ],
      hashing: hashing, languages: languages
    ) { generation in
      let any = StepRule.test(phone, mail, pin, google)
      for (name, steps) in [
        ("verify_email", [StepRule.test(mail, isSkippable: true)]), ("change_email", [.test(mail)]),
        ("change_phone", [.test(phone)]),
        ("join_phone", [.test(phone)]), ("step_up", [any]), ("pin_set", [.test(pin)]), ("pin_change", [.test(pin)]),
        ("pin_unlock", [.test(pin)]), ("pin_disable", [.test(pin)]), ("pin_reset", [.test(mail, phone), .test(pin)]),
        ("password_reset", [.test(mail), .test("password")]), ("login_password", [.test("password")]),
        ("backwards", [.test(pin)]),
      ] {
        generation.flows[name] = .test(name, account: .existing, steps: steps)
      }
      generation.flows["register_email"] = .test(
        "register_email", account: .new, steps: [.test("password"), .test(mail, isSkippable: true)])
      for (name, rule) in [("login", AccountRule.existing), ("register", .new), ("enter", .any)] {
        generation.flows[name] = .test(
          name, account: rule, registers: rule == .existing ? [google] : [], steps: [.test(phone, mail, google)])
      }
      // No resend timer: other suites test it.
      for name in [phone, mail] {
        generation.policies[name] = .test(
          name, resendAfter: [],
          limits: [
            .test(
              "verify", on: .verify, per: .identifier, max: 5, window: .seconds(86_400),
              lock: [.seconds(900), .seconds(3600)]),
            .test("send_ip", on: .send, per: .ip, max: 1000, window: .seconds(3600)),
          ], unknownAccount: name == mail ? .conceal : .reveal)
      }
      generation.policies["password"] = .test("password", limits: Self.perAccount, unknownAccount: .conceal)
      change(&generation)
    }
  }

  /// The stored session of a completed flow; nil if it no longer exists.
  func session(_ view: FlowView) async throws -> SessionSnapshot? {
    guard let token = view.session?.token else { return nil }
    return try await SessionDirectory(store: store, clock: clock).find(TokenHash(of: token.reveal().utf8))
  }

  /// The stored session of a completed flow, which must exist.
  func signedIn(_ view: FlowView) async throws -> SessionSnapshot { try #require(try await session(view)) }

  /// A client whose session has just registered a number.
  func registeredClient() async throws -> ClientContext {
    client(session: try await signedIn(submit(begun("register"), code).get()))
  }

  /// Runs a flow with one code to its end.
  func pass(_ flow: String, _ provider: ProviderName, _ typed: String?, by client: ClientContext) async throws
    -> FlowView
  {
    let id = try await engine.create(flow, returnTo: nil, browser: nil, client: client).get().id
    _ = try await engine.begin(
      id, provider: provider.rawValue, fields: typed.map { ["phone": .text($0)] } ?? [:], client: client
    ).get()
    await engine.deliveriesEnd()
    return try await engine.submit(id, fields: ["code": .text(code)], client: client).get()
  }

  /// Begins a step of a full provider with all its fields.
  func secret(_ flow: String, _ fields: [String: String], provider: ProviderName = Self.pin, by client: ClientContext)
    async -> Result<
      FlowView, Refusal
    >
  {
    switch await engine.create(flow, returnTo: nil, browser: nil, client: client) {
    case .failure(let refusal): .failure(refusal)
    case .success(let view):
      await engine.begin(view.id, provider: provider.rawValue, fields: fields.mapValues { .text($0) }, client: client)
    }
  }

  /// Runs a flow with a return from Google.
  /// - Parameter attested: whether Google has verified the address without being authoritative for it.
  func google(
    _ flow: String = "login", sub: String, email: String? = nil, verified: Bool = true, attested: Bool = false,
    telling: [String: String] = [:], by client: ClientContext
  ) async throws -> Result<FlowView, Refusal> {
    let id = try await engine.create(flow, returnTo: nil, browser: nil, client: client).get().id
    _ = try await engine.begin(id, provider: "google_oauth", fields: [:], client: client).get()
    var fields: [String: InputValue] = [
      "sub": .text(sub), "verified": .text("\(verified)"), "attested": .text("\(attested)"),
    ]
    fields["email"] = email.map { .text($0) }
    for (name, value) in telling { fields[name] = .text(value) }
    return await engine.submit(id, fields: fields, client: client)
  }
}
