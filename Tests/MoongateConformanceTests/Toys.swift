import MoongateConformance
import MoongateSDK
import Synchronization

/// A code provider that holds all rules. Tests break its parts one by one.
struct ToyChannel: CodeProvider {
  var descriptor = Self.described()
  var reads: @Sendable (ProviderInput) throws(InputProblem) -> Identifier = { input throws(InputProblem) in
    try input.email()
  }
  var delivers: @Sendable (CodeMessage, Identifier, StepTools) async throws(DeliveryFault) -> Void = {
    code, identifier, tools throws(DeliveryFault) in
    try await Self.send(code, identifier, tools)
  }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try reads(input) }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    try await delivers(code, identifier, tools)
  }

  static func send(_ code: CodeMessage, _ identifier: Identifier, _ tools: StepTools) async throws(DeliveryFault) {
    try await tools.send(
      Message(channel: .mail, to: identifier.value, subject: "Your code", text: code.text, code: code.code))
  }

  static func described(
    policy: String = goodPolicy, facts: [FactField] = [.emailDomain], kinds: [IdentifierKind] = [.email],
    sdk: Int = SDKVersion.current,
    submit: [InputField] = [InputField(name: "code", kind: .digits)], help: String = "How mail leaves.",
    flows: [PolicySource] = [],
    words: StepWords? = nil, presentation: Presentation? = nil
  ) -> ProviderDescriptor {
    ProviderDescriptor(
      name: "toy", beginFields: [InputField(name: "email", kind: .email)], submitFields: submit,
      settings: [
        SettingField(name: "mail", kind: .messages(.mail), isRequired: true, help: help),
        SettingField(name: "token", kind: .secret, isRequired: false, help: "What a site knows us by."),
      ], policy: PolicySource(file: "toy.lua", text: policy), flows: flows, identifierKinds: kinds, facts: facts,
      words: words,
      presentation: presentation, sdk: sdk)
  }

  static let goodPolicy = """
    return policy "toy" { -- per = "nobody" is only said here
      limits = {
        send = { on = "send", per = "email", max = 4, window = "15m" },
        verify = { on = "verify", per = "email", max = 5, window = "24h", lock = { "15m" } },
      },
      unknown_account = "conceal",
    }
    """
}

/// A full provider that holds all rules: a word chosen by the account, with an address. Tests break its parts one by
/// one.
struct ToyWord: FullProvider {
  typealias Begin = @Sendable (StepContext, ProviderInput) async throws -> StepAnswer
  typealias Submit = @Sendable (StepContext, ProviderInput) async throws -> StepAnswer

  static let word = InputField(name: "word", kind: .password)

  struct Fault: Error {
    var text = ""
  }

  var descriptor = Self.described()
  var checks: @Sendable (ProviderInput) throws(InputProblem) -> Void = { input throws(InputProblem) in
    try Self.check(input)
  }
  var begins: Begin = { _, _ in .ask([Self.word], state: []) }
  var submits: Submit = { step, input in try await Self.check(step, input) }
  var upgrades: @Sendable ([UInt8], Int) async throws -> [UInt8] = { _, version in
    throw RecordUpgradeMissing(version: version)
  }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? {
    try input.optionalText("email") == nil ? nil : try input.email()
  }

  func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) { try checks(input) }
  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { try await begins(step, input) }
  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { try await submits(step, input) }
  func upgrade(_ record: [UInt8], from version: Int) async throws -> [UInt8] { try await upgrades(record, version) }

  static func described(
    outcomes: [Outcome] = [Outcome("wrong_word", "This is not your word.")], submit: [InputField] = [word],
    presentation: Presentation? = nil,
    recordVersion: Int = 1
  ) -> ProviderDescriptor {
    ProviderDescriptor(
      name: "toy", beginFields: [InputField(name: "email", kind: .email, isRequired: false)], submitFields: submit,
      settings: [SettingField(name: "token", kind: .secret, isRequired: false, help: "What a site knows us by.")],
      policy: PolicySource(file: "toy.lua", text: ToyChannel.goodPolicy), identifierKinds: [.email],
      hashesSecrets: true,
      outcomes: outcomes + [Outcome(.alreadySet, "There is a word already.", isFailure: false)], facts: [.emailDomain],
      presentation: presentation, recordVersion: recordVersion)
  }

  static func check(_ input: ProviderInput) throws(InputProblem) {
    guard (1...200).contains(try input.text(word.name).utf8.count) else {
      throw InputProblem(field: word.name, reason: .invalidInput, detail: "A word has 1 to 200 bytes.")
    }
  }

  static func typed(_ input: ProviderInput) throws -> [UInt8] { Array(try input.text(word.name).utf8) }

  static func check(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    guard let hasher = step.tools.hasher else { throw Fault() }
    if step.purpose == .set, step.account?.record != nil { return .refused(.alreadySet) }
    if step.purpose == .set {
      return .proved(Proof(record: .replaceOnce(Array(try await hasher.hash(try typed(input)).utf8))))
    }
    let record = step.account?.record.map { String(decoding: $0, as: UTF8.self) }
    guard case .right = try await hasher.verify(try typed(input), against: record) else {
      return .refused("wrong_word")
    }
    return .proved(Proof(record: step.purpose == .disable ? .remove : .keep))
  }
}

/// A full provider with one-time proofs of limited lifetime: a clock tick every 30 seconds, like an authenticator app.
struct ToyTick: FullProvider {
  static let length: Int64 = 30_000

  /// Whether the use is recorded by a record that is replaced once.
  var isOnce = true
  /// Whether used ticks are refused.
  var looks = true
  /// How long after its end a tick is still accepted, in milliseconds.
  var grace: Int64 = 0

  let descriptor = ProviderDescriptor(
    name: "toy", beginFields: [], submitFields: [InputField(name: "tick", kind: .digits)], settings: [],
    policy: PolicySource(file: "toy.lua", text: ToyChannel.goodPolicy), identifierKinds: [],
    outcomes: [Outcome("wrong_tick", "Wrong, late or used.")]
  )

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .ask(descriptor.submitFields, state: [])
  }

  func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
    guard Int64(try input.text("tick")) != nil else {
      throw InputProblem(field: "tick", reason: .invalidInput, detail: "A tick is digits.")
    }
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    let tick = Int64(try input.text("tick")) ?? 0
    let used = step.account?.record.flatMap { Int64(String(decoding: $0, as: UTF8.self)) } ?? 0
    guard tick > 0, tick < 4_000_000_000_000, step.now >= tick, step.now < tick + Self.length + grace,
      !looks || tick > used
    else {
      return .refused("wrong_tick")
    }
    // A used tick is no longer secret, but it was an input, so it is stored in another form.
    let note = Array(String(tick + 1).utf8)
    return .proved(Proof(record: isOnce ? .replaceOnce(note) : .replace(note)))
  }

  static let subject: ConformanceSubject = {
    var subject = ConformanceSubject(of: ToyTick().descriptor)
    subject.setsUp = false
    subject.right = { step in ["tick": .text(String(step.now))] }
    subject.wrong = { _ in ["tick": .text("1")] }
    subject.isOneTime = true
    subject.lifetime = .milliseconds(length)
    return subject
  }()
}

/// A value that is shared between calls.
final class SharedValue<Value: Sendable>: Sendable {
  private let state: Mutex<Value>

  init(_ value: Value) { state = Mutex(value) }

  var value: Value {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }

  /// Changes the value and returns the old one.
  func change(_ body: @Sendable (Value) -> Value) -> Value {
    state.withLock { value in
      defer { value = body(value) }
      return value
    }
  }
}
