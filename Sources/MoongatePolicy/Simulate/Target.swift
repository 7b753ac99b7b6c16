import Foundation
import MoongateCore
import MoongateSDK

/// The attacked flow, and the input for its users.
struct Target: Sendable {
  /// The secret of a provider that sends no codes.
  struct Secret: Sendable {
    let field: String
    /// The secret of every user.
    let right: String
    let wrong: String
  }

  let flow: String
  /// The flow in which the owner signs in to the existing account.
  let ownersFlow: String
  /// The providers that the first step of each flow is begun with, in order. In a `fallback`, these are all providers
  /// up to the attacked one.
  private let senders: [String: [ProviderName]]
  /// Nil: the provider sends codes.
  let secret: Secret?
  /// Whether the flow needs a session. The attacker then has a session of the account, as on a phone that was left
  /// unlocked.
  let needsSession: Bool
  private let provider: any Provider
  /// The descriptor of the attacked provider.
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
    field = provider.descriptor.beginFields.first { provider.descriptor.identifierKind(of: $0) != nil }
    senders = generation.flows.mapValues { $0.senders(upTo: name) }
    let begun = generation.flows.values.filter { $0.steps.first?.choices.contains(name) ?? false }.sorted {
      $0.name < $1.name
    }
    if provider is any CodeProvider {
      // Flows of an account's own need a session, which attackers do not have.
      let flows = begun.filter {
        $0.purpose.letsIn && generation.accounts.registration.refusal(of: $0.account, isInvited: false) == nil
      }
      // Messages can be sent to anyone where registration is open; guesses need existing accounts.
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

  /// The providers that the first step of the flow is begun with, in order.
  func senders(in flow: String) -> [ProviderName] { senders[flow] ?? [] }

  /// The input of the user with this number.
  func fields(_ person: Int) -> [String: InputValue] {
    // Indian phone numbers have ten digits. libphonenumber must consider them possible.
    guard let field else { return [:] }
    let typed =
      switch field.identifierKind {
      case .email: "person\(person)@example.com"
      case .name: "person\(person)"
      default: Self.number(person)
      }
    return [field.name: .text(typed)]
  }

  /// Consecutive users have different prefixes, because attackers who earn money with messages use many prefixes.
  private static func number(_ person: Int) -> String {
    "+91" + String(person < 900_000_000 ? 9_000_000_000 + person * 100_003 % 900_000_000 : 9_000_000_000 + person)
  }

  /// The identifier of the user.
  func identifier(_ person: Int) throws(InputProblem) -> Identifier {
    let input = ProviderInput(fields: fields(person), defaultRegion: region)
    if let codes = provider as? any CodeProvider { return try codes.readIdentifier(input) }
    if let full = provider as? any FullProvider, let named = try full.readIdentifier(input) { return named }
    return Identifier(kind: .phone, value: Self.number(person), display: Self.number(person))
  }

  /// The number of equally likely codes or secrets; nil if it is unknown.
  func space(_ rule: CodeRule) -> Double? {
    if secret != nil { return provider.descriptor.secretSpace.map(Double.init) }
    return pow(Double(rule.alphabet.characters.count), Double(rule.length))
  }

  /// The fields to submit.
  /// - Parameter code: the code that was sent to the user.
  func answer(isRight: Bool, code: String, _ rule: CodeRule) -> [String: InputValue] {
    if let secret { return [secret.field: .text(isRight ? secret.right : secret.wrong)] }
    return ["code": .text(isRight ? code : Self.wrong(code, rule))]
  }

  /// A code that is certainly wrong.
  private static func wrong(_ right: String, _ rule: CodeRule) -> String {
    let zero = String(repeating: rule.alphabet.characters[0], count: rule.length)
    return right == zero ? String(zero.dropLast()) + String(rule.alphabet.characters[1]) : zero
  }
}

extension FlowDefinition {
  /// The providers that the first step is begun with, until a code of this provider is sent. In a `fallback`, these are
  /// all providers before it and the provider itself.
  func senders(upTo provider: ProviderName) -> [ProviderName] {
    guard let first = steps.first, first.isFallback, let place = first.choices.firstIndex(of: provider) else {
      return [provider]
    }
    return Array(first.choices[...place])
  }
}

/// The accounts of users in a virtual gateway, and the sessions that flows need.
struct SimulatedAccounts {
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

  /// The token of a device on which the user has signed in before.
  func device(of person: Int) async throws -> SecretText? {
    guard let account = accounts[person] else { return nil }
    return try await gateway.trustDevice(for: account, passed: [provider])
  }

  /// The client, with a session of the user if the flow needs one.
  /// - Parameter who: the holder of the session. Each holder has a separate session.
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
    var own = ClientContext(
      decision: client.decision, address: client.address, userAgent: client.userAgent, browser: client.browser,
      session: session, device: client.device)
    own.place = client.place
    return own
  }

  /// A completed flow has replaced the token of its session.
  mutating func forget(_ person: Int, heldBy who: String) { sessions["\(who) \(person)"] = nil }
}
