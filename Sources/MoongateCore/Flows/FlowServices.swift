import Logging
import MoongateSDK

/// What every part of the engine uses. It is immutable, and the parts share it by reference.
///
/// A part that needs more, such as the web client or the hashing permits, has it as a property of its own.
final class FlowServices: Sendable {
  let store: any Store
  let generations: ActiveGeneration
  let providers: ProviderRegistry
  let clock: any GatewayClock
  let random: any RandomSource
  let keys: KeyRing
  let audit: AuditTrail
  let logger: Logger

  /// More than five parameters: one for each service.
  init(
    store: any Store, generations: ActiveGeneration, providers: ProviderRegistry, clock: any GatewayClock,
    random: any RandomSource, keys: KeyRing, audit: AuditTrail, logger: Logger
  ) {
    self.store = store
    self.generations = generations
    self.providers = providers
    self.clock = clock
    self.random = random
    self.keys = keys
    self.audit = audit
    self.logger = logger
  }
}

/// A part of the engine: the functions of one subject. Gives it short names for the shared services.
protocol FlowPart: Sendable {
  var services: FlowServices { get }
}

extension FlowPart {
  var store: any Store { services.store }
  var generations: ActiveGeneration { services.generations }
  var providers: ProviderRegistry { services.providers }
  var clock: any GatewayClock { services.clock }
  var random: any RandomSource { services.random }
  var keys: KeyRing { services.keys }
  var audit: AuditTrail { services.audit }
  var logger: Logger { services.logger }

  /// The providers for a request: those built into this program and those of its generation. A request that began
  /// before a change of the configuration keeps the providers it began with.
  func registry(_ request: RequestContext) -> ProviderRegistry { request.generation.registry ?? providers }

  /// Runs a store operation and converts its error.
  func asking<Answer>(_ body: () async throws(StoreFault) -> Answer) async throws(FlowError) -> Answer {
    do { return try await body() } catch { throw .store(error) }
  }

  /// An audit event about this flow.
  func event(_ kind: AuditEvent.Kind, _ flow: FlowTransaction, step: StepRecord? = nil) -> AuditEvent {
    let (record, request) = (flow.record, flow.request)
    var detail = ["request": request.client.decision.text]
    if let grant = record.grant { detail["app"] = grant.client }
    return AuditEvent(
      id: DecisionID(from: random), at: request.now, kind: kind, flow: record.name, flowPrefix: flow.id.prefix,
      provider: step?.provider,
      account: record.account ?? step?.account, identifier: step?.identifier.map { keys.logHash($0.value) },
      address: request.client.address.description, detail: detail)
  }
}
