import MoongateSDK

/// What only some parts of the engine use: connections to the outside, and permits to hash.
struct ProviderServices: Sendable {
  let delivery: any DeliveryService
  let web: any WebClient
  let hashing: any HashingPermits
  /// The languages that messages are available in.
  let languages: any MessageLanguages
}

/// The parts of the engine, each with the parts that it uses. A part uses only those above it in this list.
final class FlowParts: Sendable {
  /// Flows that were created but not begun.
  let pending: PendingFlows
  let deliveries = BackgroundDeliveries()
  let metrics = ProviderMetrics()
  let sendMetrics = SendMetrics()

  let seals: FlowSeals
  let lookup: AccountLookup
  let checks: AccountChecks
  let grants: GrantChecks
  let ledger: AttemptLedger
  let fallbacks: FallbackRules
  let policies: PolicyEvaluation
  let requirements: SignInRequirements
  let messengers: Messengers
  let calls: ProviderCalls
  let notices: FlowNotices
  let storage: FlowStorage
  let admission: StepAdmission
  let settlement: StepSettlement
  let views: FlowViews
  let completion: FlowCompletion
  let providerStep: ProviderStep
  let codeStep: CodeStep

  init(_ services: FlowServices, _ outside: ProviderServices, sharesFlows: Bool) {
    pending = PendingFlows(isShared: sharesFlows)
    seals = FlowSeals(services: services)
    lookup = AccountLookup(services: services)
    checks = AccountChecks(services: services, lookup: lookup)
    grants = GrantChecks(services: services)
    ledger = AttemptLedger(services: services)
    fallbacks = FallbackRules(services: services)
    policies = PolicyEvaluation(services: services, lookup: lookup, checks: checks, fallbacks: fallbacks)
    requirements = SignInRequirements(services: services, lookup: lookup, checks: checks, policies: policies)
    messengers = Messengers(services: services, delivery: outside.delivery, languages: outside.languages)
    calls = ProviderCalls(
      services: services, seals: seals, lookup: lookup, messengers: messengers, web: outside.web, metrics: metrics)
    notices = FlowNotices(
      services: services, lookup: lookup, checks: checks, messengers: messengers, deliveries: deliveries,
      ledger: ledger)
    storage = FlowStorage(services: services, pending: pending, checks: checks, grants: grants, ledger: ledger)
    admission = StepAdmission(services: services, lookup: lookup, ledger: ledger, policies: policies, calls: calls)
    settlement = StepSettlement(
      services: services, seals: seals, ledger: ledger, admission: admission, notices: notices, storage: storage)
    views = FlowViews(
      services: services, seals: seals, lookup: lookup, checks: checks, grants: grants, storage: storage,
      admission: admission)
    completion = FlowCompletion(
      services: services, lookup: lookup, checks: checks, grants: grants, requirements: requirements,
      messengers: messengers, notices: notices, storage: storage, admission: admission, settlement: settlement,
      views: views)
    providerStep = ProviderStep(
      services: services, lookup: lookup, checks: checks, calls: calls, storage: storage, admission: admission,
      settlement: settlement, views: views, completion: completion, hashing: outside.hashing)
    codeStep = CodeStep(
      services: services, lookup: lookup, checks: checks, messengers: messengers, calls: calls, admission: admission,
      settlement: settlement, views: views, completion: completion, providerStep: providerStep,
      deliveries: deliveries, sendMetrics: sendMetrics)
  }
}
