import MoongateCore
import MoongateSDK

/// A configuration that passed every check: typed values, and the text that its functions are loaded from.
struct Generation: PolicyGeneration {
  let id: String
  let changeMark: String
  let gateway: GatewaySettings
  let routes: RouteTable
  let flows: [String: FlowDefinition]
  let policies: [ProviderName: ProviderPolicy]
  let tokenPolicy: ProviderPolicy
  let accounts: AccountRules
  let guarantees: [Guarantee]
  let pages: [PageFile]
  var warnings: [ConfigurationProblem]
  let functions: FunctionTable
  /// By name, as problems spell it.
  let sources: [String: LuaFiles.Source]
  /// Whom `require_also` may name.
  let providers: Set<ProviderName>
  /// What the providers of the program declare.
  let declaredFacts: [DeclaredFact]
  let pads: Set<ProviderName>
  /// Those of the program and those that came with this folder; nil where none did. Their programs live as long as it.
  var registry: ProviderRegistry?
  let lease = GenerationLease()

  func makeEvaluator() throws(PolicyFault) -> any PolicyEvaluator { try LuaEvaluator(self) }
}

extension PolicyGeneration {
  /// The same generation with more to warn of.
  package func adding(warnings: [ConfigurationProblem]) -> any PolicyGeneration {
    guard !warnings.isEmpty, var generation = self as? Generation else { return self }
    generation.warnings = Problems.sorted(generation.warnings + warnings)
    return generation
  }
}
