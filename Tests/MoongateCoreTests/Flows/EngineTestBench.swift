import Logging
import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// A code provider for tests: it takes any string of digits as a number.
struct ToyCode: CodeProvider {
  let name: ProviderName
  var kind = IdentifierKind.phone

  var descriptor: ProviderDescriptor {
    ProviderDescriptor(
      name: name, beginFields: [InputField(name: "phone", kind: .phone)],
      submitFields: [InputField(name: "code", kind: .digits)],
      settings: [SettingField(name: "sms", kind: .messages(kind == .phone ? .sms : .mail), isRequired: true, help: "")],
      policy: PolicySource(file: "toy.lua", text: ""), identifierKinds: [kind], role: .provesIdentifier)
  }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier {
    let digits = try input.text("phone").filter(\.isNumber)
    guard digits.count >= 4 else { throw InputProblem(field: "phone", reason: .invalidPhone, detail: "too short") }
    return Identifier(
      kind: kind, value: "+" + digits, display: "+" + digits, attributes: ["country": "IN", "type": "mobile"])
  }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    try await tools.send(Message(channel: .sms, to: identifier.value, text: code.text, code: code.code))
  }
}

/// A full provider for tests: 1357 is right, 0000 is malformed, and 9999 makes it throw.
struct ToyPIN: FullProvider {
  struct Broken: Error {}

  var descriptor: ProviderDescriptor {
    ProviderDescriptor(
      name: EngineTestBench.pin, beginFields: [], submitFields: [InputField(name: "pin", kind: .digits, length: 4)],
      settings: [],
      policy: PolicySource(file: "toy.lua", text: ""), identifierKinds: [], outcomes: [Outcome(.invalidPIN, "Wrong.")])
  }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .ask(descriptor.submitFields, state: [7])
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    switch try input.text("pin") {
    case "1357" where step.state == [7]: .proved(Proof(record: .replace([1])))
    case "0000": .malformed(InputProblem(field: "pin", reason: .invalidInput, detail: "not that"))
    case "9999": throw Broken()
    default: .refused(.invalidPIN)
    }
  }
}

/// Keeps messages; fails on request.
final class ToyDelivery: DeliveryService, Messenger {
  private let state = Mutex((messages: [Message](), fails: false))

  /// The messages that carry a code.
  var messages: [Message] { state.withLock { $0.messages.filter { $0.code != nil } } }
  /// The messages without a code: notices to users.
  var notices: [Message] { state.withLock { $0.messages.filter { $0.code == nil } } }
  var fails: Bool {
    get { state.withLock { $0.fails } }
    set { state.withLock { $0.fails = newValue } }
  }

  func messenger(for settings: DeliverySettings) -> any Messenger { self }

  func send(_ message: Message) async throws(DeliveryFault) {
    let fails = state.withLock { state in
      if !state.fails { state.messages.append(message) }
      return state.fails
    }
    if fails { throw DeliveryFault(reason: "told to fail") }
  }
}

/// A flow engine with its dependencies, a manual clock, and helpers that act like a user.
struct EngineTestBench: Sendable {
  static let phone = ProviderName(test: "phone_otp")
  static let mail = ProviderName(test: "email_code")
  static let pin = ProviderName(test: "pin")

  static let google = ProviderName(test: "google_oauth")
  /// The code providers; tests that take one as argument run for each.
  static let codes = [phone, mail]

  /// The code provider of the flows.
  let by: ProviderName
  let keys: KeyRing
  let clock = ManualClock()
  let delivery = ToyDelivery()
  let store: SQLiteStore
  let generations: ActiveGeneration
  let engine: FlowEngine
  let audit: AuditTrail
  /// The log output of the engine.
  let log = CapturedLog()
  /// The shadow in which a test evaluates a candidate policy.
  let shadow: PolicyShadow

  /// - Parameters:
  ///   - others: further providers; a toy PIN by default.
  ///   - change: adapts the shipped policies to the test.
  init(
    by: ProviderName = Self.phone, others: [any Provider] = [ToyPIN()],
    hashing: any HashingPermits = UnavailableHashing(),
    sharesFlows: Bool = false, languages: any MessageLanguages = EnglishMessages(),
    _ change: (inout TestGeneration) -> Void = { _ in }
  ) async throws {
    self.by = by
    let settings = ProviderSettings(deliveries: ["sms": .outbox])
    var generation = TestGeneration(
      gateway: .test(providers: [Self.phone: settings, Self.mail: settings]),
      flows: [
        .test("login", account: .existing, steps: [.test(by)]), .test("register", account: .new, steps: [.test(by)]),
        .test("enter", account: .any, steps: [.test(by)]),
      ],
      policies: [.test(Self.phone), .test(Self.mail)]
        + others.map { .test($0.descriptor.name, limits: Self.perAccount) })
    generation.apps = .test()
    change(&generation)
    generations = ActiveGeneration(generation, at: clock.now())
    let random = SystemRandom()
    keys = try KeyRing(master: [UInt8](repeating: 7, count: 32))
    store = try SQLiteStore(path: ":memory:", keyFingerprint: keys.fingerprint)
    audit = AuditTrail(store: store, logger: Logger(label: "test"))
    shadow = PolicyShadow(generations: generations, keys: keys, random: random) {
      try SQLiteStore(path: ":memory:", keyFingerprint: [])
    }
    engine = FlowEngine(
      store: store, generations: generations,
      providers: try ProviderRegistry([ToyCode(name: Self.phone), ToyCode(name: Self.mail, kind: .email)] + others),
      delivery: delivery,
      hashing: hashing, clock: clock, random: random, keys: keys, audit: audit, logger: log.logger,
      shadow: shadow, languages: languages, sharesFlows: sharesFlows)
  }

  /// The engine of another gateway on the same store. Of two concurrent requests, both have read the flow before either
  /// continues.
  func racingEngine() -> FlowEngine {
    let line = StartingLine(of: 2)
    return engine(on: MultiNodeStore([store]) { await line.reach() })
  }

  /// The engine of another gateway that uses this store.
  func engine(on store: any Store) -> FlowEngine {
    FlowEngine(
      store: store, generations: generations, providers: engine.providers, delivery: delivery, clock: clock,
      random: SystemRandom(), keys: keys, audit: audit, logger: log.logger, languages: EnglishMessages(),
      sharesFlows: true)
  }

  /// A lock after three wrong attempts.
  static let perAccount = [
    Limit.test("verify", on: .verify, per: .account, max: 3, window: .seconds(86_400), lock: [.seconds(900)])
  ]

  func client(
    _ address: [UInt8] = [192, 0, 2, 1], browser: TokenHash? = nil, session: SessionSnapshot? = nil,
    device: SecretText? = nil,
    at entryPoint: ClientContext.EntryPoint = .api
  ) -> ClientContext {
    ClientContext(
      decision: DecisionID(from: SystemRandom()), address: ClientAddress(bytes: address) ?? .unspecified,
      userAgent: "test", browser: browser,
      session: session, device: device, entryPoint: entryPoint)
  }

  /// Creates a flow.
  func flow(_ name: String = "login", returnTo: String? = nil) async throws -> FlowID {
    try await engine.create(name, returnTo: returnTo, browser: nil, client: client()).get().id
  }

  /// Creates a flow and has a code sent to the number.
  func begun(
    _ name: String = "login", phone: String = "919999999999", address: [UInt8] = [192, 0, 2, 1], returnTo: String? = nil
  ) async throws
    -> FlowID
  {
    let id = try await flow(name, returnTo: returnTo)
    _ = try await begin(id, phone: phone, address: address).get()
    return id
  }

  func begin(_ id: FlowID, phone: String = "919999999999", address: [UInt8] = [192, 0, 2, 1]) async -> Result<
    FlowView, Refusal
  > {
    await engine.begin(id, provider: nil, fields: ["phone": .text(phone)], client: client(address))
  }

  func submit(_ id: FlowID, _ code: String, address: [UInt8] = [192, 0, 2, 1]) async -> Result<FlowView, Refusal> {
    await engine.submit(id, fields: ["code": .text(code)], client: client(address))
  }

  /// The code that was sent last.
  var code: String { delivery.messages.last?.code ?? "none" }

  /// A code that differs from the one that was sent last.
  var wrong: String { code == "000000" ? "000001" : "000000" }

  /// Creates an account for the number, then advances the clock past all timers.
  @discardableResult
  func registered(_ phone: String = "919999999999") async throws -> AccountView {
    let before = delivery.messages.count
    let id = try await begun("register", phone: phone)
    // With `conceal` the message is sent after the answer.
    while delivery.messages.count == before { await Task.yield() }
    let view = try await submit(id, code).get()
    clock.advance(by: .seconds(1000))
    return try #require(view.account)
  }
}

extension Result where Failure == Refusal {
  /// The refusal, or nil on success.
  var refusal: Refusal? { if case .failure(let refusal) = self { refusal } else { nil } }
}

/// A barrier: arrivals wait until all have come; later arrivals do not wait.
private actor StartingLine {
  private let number: Int
  private var reached = 0
  private var waiting: [CheckedContinuation<Void, Never>] = []

  init(of number: Int) { self.number = number }

  func reach() async {
    reached += 1
    if reached < number { return await withCheckedContinuation { waiting.append($0) } }
    for one in waiting { one.resume() }
    waiting = []
  }
}
