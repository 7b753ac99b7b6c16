import MoongateCore
import MoongateSDK

/// A generation that passes its calls on to another one, except those that it declares itself.
///
/// The compiler does not ask for the forwarding of a requirement that `PolicyGeneration` itself has a default for. Such
/// a requirement needs its line here too, or wrapped generations have its default.
protocol WrappingGeneration: PolicyGeneration {
  /// The generation that answers the calls.
  var base: any PolicyGeneration { get }
}

extension WrappingGeneration {
  var id: String { base.id }
  var changeMark: String { base.changeMark }
  var gateway: GatewaySettings { base.gateway }
  var routes: RouteTable { base.routes }
  var flows: [String: FlowDefinition] { base.flows }
  var closedRegistrations: Set<String> { base.closedRegistrations }
  var policies: [ProviderName: ProviderPolicy] { base.policies }
  var tokenPolicy: ProviderPolicy { base.tokenPolicy }
  var accounts: AccountRules { base.accounts }
  var apps: AppTable { base.apps }
  var pages: [PageFile] { base.pages }
  var pads: Set<ProviderName> { base.pads }
  var registry: ProviderRegistry? { base.registry }
  var secretFiles: [String: [UInt8]] { base.secretFiles }
  var identityProvers: IdentityProvers { base.identityProvers }
  var warnings: [ConfigurationProblem] { base.warnings }
  var lease: GenerationLease { base.lease }

  func makeEvaluator() throws(PolicyFault) -> any PolicyEvaluator { try base.makeEvaluator() }
}
