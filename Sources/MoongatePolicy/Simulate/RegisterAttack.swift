import Foundation
import MoongateCore
import MoongateSDK

/// How a configuration creates accounts with a provider.
struct Registration: Sendable {
  let flow: String
  /// The providers that the step is begun with, in order.
  private let senders: [ProviderName]
  let provider: ProviderName
  private let begin: [InputField]
  private let submit: [InputField]
  private let sendsCodes: Bool

  init(_ generation: any PolicyGeneration, _ name: ProviderName, of providers: ProviderRegistry)
    throws(SimulationProblem)
  {
    guard let provider = providers[name] else { throw .notConfigured(name, Array(generation.policies.keys)) }
    guard generation.accounts.registration == .open else { throw .registrationClosed(generation.accounts.registration) }
    let sendsCodes = provider is any CodeProvider
    let flows = generation.flows.values.filter { flow in
      guard flow.account != .existing, flow.steps.first?.choices.contains(name) ?? false,
        !flow.needsSession(by: providers)
      else { return false }
      return sendsCodes || flow.purpose.step(of: name) == .set
    }
    guard
      let flow = flows.sorted(by: { ($0.account == .new ? 0 : 1, $0.name) < ($1.account == .new ? 0 : 1, $1.name) })
        .first
    else {
      throw .noRegistration(name)
    }
    self.sendsCodes = sendsCodes
    self.flow = flow.name
    senders = flow.senders(upTo: name)
    self.provider = name
    begin = provider.descriptor.beginFields
    submit = provider.descriptor.submitFields
  }

  /// Registers the account of a user who receives their messages.
  /// - Returns: the refusal; nil if the account was created.
  func register(_ person: Int, on gateway: VirtualGateway, by client: ClientContext) async -> Refusal? {
    let fields = self.fields(person)
    do throws(Refusal) {
      let id = try await gateway.create(flow, by: client).get().id
      var view = try await gateway.begin(id, providers: senders, fields: fields, by: client).get()
      if view.status == .pending, view.step?.provider == provider {
        let code = fields.values.lazy.compactMap {
          if case .text(let text) = $0 { gateway.mailbox.latest(to: text)?.code } else { nil }
        }.first
        view = try await gateway.submit(id, fields: sendsCodes ? ["code": .text(code ?? "")] : fields, by: client).get()
      }
      while view.status == .pending { view = try await gateway.skip(id, by: client).get() }
      return nil
    } catch {
      return error
    }
  }

  /// The input of the user with this number. A step that sets a secret takes all fields at once.
  private func fields(_ person: Int) -> [String: InputValue] {
    var fields: [String: InputValue] = [:]
    // Of several identifiers, a user gives one.
    let identifiers = begin.filter { $0.identifierKind != nil }.dropFirst()
    for field in sendsCodes ? begin : begin + submit where !identifiers.contains(field) {
      switch field.kind {
      case .text where field == .userName: fields[field.name] = .text("person\(person)")
      case .phone: fields[field.name] = .text("+91" + String(9_000_000_000 + person * 100_003 % 900_000_000))
      case .email: fields[field.name] = .text("person\(person)@example.com")
      case .password: fields[field.name] = .text("correct horse \(person)")
      case .text: fields[field.name] = .text("Asha")
      default: break
      }
    }
    return fields
  }
}

/// Users who register during an attack, each once and from their own address.
struct NewRegistrations: Sendable {
  let registration: Registration
  private(set) var registrations = 0
  private(set) var refused = 0

  init(_ registration: Registration) { self.registration = registration }

  mutating func registers(on gateway: VirtualGateway) async {
    registrations += 1
    let client = gateway.client(
      ClientAddress(bytes: [198, 51, UInt8(registrations >> 8 & 255), UInt8(registrations & 255)]) ?? .unspecified
    ).ofSimulation
    if await registration.register(500_000_000 + registrations, on: gateway, by: client) != nil { refused += 1 }
  }
}

/// Registers one account after another, from every address as fast as allowed.
struct RegisterAttack {
  let registration: Registration

  func run(_ environment: AttackEnvironment) async throws -> AttackEnvironment {
    try await environment.makeAccounts(1)
    environment.newcomers = NewRegistrations(registration)
    var person = 0
    // The waiting time of each address in a round. A round without a success ends with the shortest of them.
    var waits: [Duration] = []
    while !environment.isOver {
      person += 1
      let before = environment.gateway.hashes
      let refusal = await registration.register(person, on: environment.gateway, by: environment.nextAddress())
      environment.hashes += environment.gateway.hashes - before
      if let refusal { waits.append(refusal.retryAfter ?? .seconds(1)) } else { environment.registrations += 1 }
      guard environment.isLastAddress else { continue }
      if waits.count >= environment.round { try await environment.wait(waits.min() ?? .seconds(1)) }
      waits = []
    }
    return environment
  }
}
