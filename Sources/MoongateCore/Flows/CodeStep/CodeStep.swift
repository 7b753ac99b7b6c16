import MoongateSDK

/// Steps of code providers: sending a code, sending it again, and comparing what the user entered.
///
/// `CodeStep+Begin` determines the recipient, `CodeStep+Sending` sends, and `CodeStep+Submit` compares.
struct CodeStep: FlowPart {
  let services: FlowServices
  let lookup: AccountLookup
  let checks: AccountChecks
  let messengers: Messengers
  let calls: ProviderCalls
  let admission: StepAdmission
  let settlement: StepSettlement
  let views: FlowViews
  let completion: FlowCompletion
  let providerStep: ProviderStep
  /// Deliveries that continue after the response.
  let deliveries: BackgroundDeliveries
  let sendMetrics: SendMetrics

  var fallbacks: FallbackRules { admission.fallbacks }
  var policies: PolicyEvaluation { admission.policies }
  var ledger: AttemptLedger { admission.ledger }
}

/// A code that a client asks for.
struct CodeRequest: Sendable {
  let provider: any CodeProvider
  let policy: ProviderPolicy
  let identifier: Identifier
  /// The account that the flow has identified.
  let own: Account?
  /// Whether the request begins the step, so that it counts as begun.
  var isBegin = false
}
