import Foundation
import MoongateCore
import MoongateSDK

/// Which flow is attacked, and how people are named to it.
struct Target: Sendable {
  /// What a provider that sends no codes asks for.
  struct Secret: Sendable {
    let field: String
    /// Everybody's own.
    let right: String
    let wrong: String
  }

  let flow: String
  /// By which an owner signs in to the account that is there.
  let ownersFlow: String
  /// The providers by which the step is begun in each of the flows, in order: of a `fallback` all before the one that
  /// is attacked.
  private let senders: [String: [ProviderName]]
  /// nil: a code.
  let secret: Secret?
  /// Whether the flow begins with a session: then whoever guesses has one of the account's, as on a phone that was left
  /// unlocked.
  let needsSession: Bool
  private let provider: any Provider
  /// Of the provider that is attacked.
  let descriptor: ProviderDescriptor
  private let field: InputField?
  private let region: String

  init(_ generation: any PolicyGeneration, _ name: ProviderName, of providers: ProviderRegistry, wantsNew: Bool)
    throws(SimulationProblem)
  {
    guard let provider = providers[name] else { throw .notConfigured(name, Array(generation.policies.keys)) }
    self.provider = provider
    region = generation.gateway.region
    descriptor = provider.descriptor
    field = descriptor.beginFields.first { $0.kind == .phone || $0.kind == .email }
    senders = generation.flows.mapValues { $0.senders(upTo: name) }
    let begun = generation.flows.values.filter { $0.steps.first?.choices.contains(name) ?? false }.sorted {
      $0.name < $1.name
    }
    if provider is any CodeProvider {
      // An account's own flows begin with a session, which neither strangers nor attackers have.
      let flows = begun.filter { $0.purpose.letsIn }
      // Messages to strangers are to be had where anybody may register; guesses are worth making where people have
      // accounts.
      let wanted: [AccountRule] = wantsNew ? [.new, .any, .existing] : [.existing, .any]
      guard let flow = wanted.lazy.compactMap({ rule in flows.first { $0.account == rule } }).first, field != nil else {
        throw .noFlow(name)
      }
      self.flow = flow.name
      ownersFlow =
        [AccountRule.existing, .any].lazy.compactMap { rule in flows.first { $0.account == rule } }.first?.name
        ?? flow.name
      secret = nil
      needsSession = false
    } else if provider is any FullProvider, descriptor.hashesSecrets,
      let asked = descriptor.submitFields.first(where: \.isRequired)
    {
      let flows = begun.filter { $0.account != .new && $0.purpose.step(of: name) == .prove }
      guard let flow = flows.first(where: { !$0.needsSession(by: providers) }) ?? flows.first else {
        throw .noFlow(name)
      }
      self.flow = flow.name
      ownersFlow = flow.name
      let isDigits = asked.kind == .digits
      secret = Secret(
        field: asked.name, right: isDigits ? "739154" : "correct horse",
        wrong: isDigits ? "739155" : "not the right one")
      needsSession = flow.needsSession(by: providers)
    } else {
      throw .nothingToGuess(name)
    }
  }

  /// By which providers the first step of the flow is begun, in order.
  func senders(in flow: String) -> [ProviderName] { senders[flow] ?? [] }

  /// What to type for the person with this number.
  func fields(_ person: Int) -> [String: InputValue] {
    // Numbers of a country that has ten digits for them; libphonenumber's possible is what is asked of them.
    guard let field else { return [:] }
    return [field.name: .text(field.kind == .email ? "person\(person)@example.com" : Self.number(person))]
  }

  /// Each person after the other has another prefix: who has messages sent for money has numbers of many.
  private static func number(_ person: Int) -> String {
    "+91" + String(person < 900_000_000 ? 9_000_000_000 + person * 100_003 % 900_000_000 : 9_000_000_000 + person)
  }

  /// The person's identifier.
  func identifier(_ person: Int) throws(InputProblem) -> Identifier {
    let input = ProviderInput(fields: fields(person), defaultRegion: region)
    if let codes = provider as? any CodeProvider { return try codes.readIdentifier(input) }
    if let full = provider as? any FullProvider, let named = try full.readIdentifier(input) { return named }
    return Identifier(kind: .phone, value: Self.number(person), display: Self.number(person))
  }

  /// How many codes or secrets there are, each equally likely; nil where that is not known.
  func space(_ rule: CodeRule) -> Double? {
    if secret != nil { return provider.descriptor.secretSpace.map(Double.init) }
    return pow(Double(rule.alphabet.characters.count), Double(rule.length))
  }

  /// What to submit.
  /// - Parameter code: that was sent to the person.
  func answer(isRight: Bool, code: String, _ rule: CodeRule) -> [String: InputValue] {
    if let secret { return [secret.field: .text(isRight ? secret.right : secret.wrong)] }
    return ["code": .text(isRight ? code : Self.wrong(code, rule))]
  }

  /// A code that is surely not this one.
  private static func wrong(_ right: String, _ rule: CodeRule) -> String {
    let zero = String(repeating: rule.alphabet.characters[0], count: rule.length)
    return right == zero ? String(zero.dropLast()) + String(rule.alphabet.characters[1]) : zero
  }
}

extension FlowDefinition {
  /// The providers by which its first step is begun until a code of this one goes out: of a `fallback` all before it,
  /// and itself.
  func senders(upTo provider: ProviderName) -> [ProviderName] {
    guard let first = steps.first, first.isFallback, let place = first.choices.firstIndex(of: provider) else {
      return [provider]
    }
    return Array(first.choices[...place])
  }
}

/// The accounts of people in a virtual gateway, and the sessions that their own flows begin with.
struct People {
  private let gateway: VirtualGateway
  private let target: Target
  private let provider: ProviderName
  private var accounts: [Int: String] = [:]
  private var sessions: [String: TokenHash] = [:]

  init(_ gateway: VirtualGateway, _ target: Target, _ provider: ProviderName) {
    self.gateway = gateway
    self.target = target
    self.provider = provider
  }

  mutating func makeAccount(_ person: Int) async throws {
    let account = try await gateway.makeAccount(holding: [try target.identifier(person)])
    accounts[person] = account.id
    guard let secret = target.secret else { return }
    let record = try gateway.record(of: secret.right, for: provider, account: account.id)
    _ = try await gateway.store.apply(
      [.putProviderRecord(account: account.id, provider, sealed: record)], at: gateway.clock.now())
  }

  /// The token of a device on which the person has signed in before.
  func device(of person: Int) async throws -> SecretText? {
    try accounts[person].map { try gateway.deviceToken(for: $0, passed: [provider]) }
  }

  /// The client with a session of the person's, where flows begin with one.
  /// - Parameter who: holds it; each has one of their own.
  mutating func client(_ client: ClientContext, of person: Int, heldBy who: String) async throws -> ClientContext {
    guard target.needsSession, let account = accounts[person] else { return client }
    let key = "\(who) \(person)"
    var token = sessions[key]
    var session: SessionSnapshot?
    if let token { session = try await gateway.store.session(token) }
    if !(session?.isLive(at: gateway.clock.now()) ?? false) {
      let made = try await gateway.makeSession(of: account)
      (token, session) = (made, try await gateway.store.session(made))
    }
    sessions[key] = token
    return ClientContext(
      decision: client.decision, address: client.address, userAgent: client.userAgent, browser: client.browser,
      session: session,
      device: client.device)
  }

  /// A flow that has been completed gave its session another token.
  mutating func forget(_ person: Int, heldBy who: String) { sessions["\(who) \(person)"] = nil }
}
