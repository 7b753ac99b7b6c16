import MoongateCore
import MoongateSDK

/// A configuration that passed every check: typed values, and the sources that functions are loaded from.
struct Generation: PolicyGeneration {
  let id: String
  let changeMark: String
  let gateway: GatewaySettings
  let routes: RouteTable
  let flows: [String: FlowDefinition]
  let closedRegistrations: Set<String>
  let policies: [ProviderName: ProviderPolicy]
  let tokenPolicy: ProviderPolicy
  var accounts: AccountRules
  let apps: AppTable
  let guarantees: [Guarantee]
  let pages: [PageFile]
  var warnings: [ConfigurationProblem]
  let functions: FunctionTable
  /// By file name, as in problems.
  let sources: [String: LuaFiles.Source]
  /// The files that others may include.
  let shared: [SharedFile]
  /// The providers that `require_also` may name.
  let providers: Set<ProviderName>
  /// The facts that the program's providers declare.
  let declaredFacts: [DeclaredFact]
  let secretFiles: [String: [UInt8]]
  let pads: Set<ProviderName>
  let identityProvers: IdentityProvers
  /// The providers of the program and those that this folder adds; nil if it adds none. Their programs live as long as
  /// the registry.
  var registry: ProviderRegistry?
  let lease = GenerationLease()

  /// The generation with open registration, which admits everybody. While new ones are refused, the accounts and
  /// sessions of earlier registrations still exist.
  var withOpenRegistration: Generation {
    var open = self
    open.accounts.registration = .open
    open.accounts.admit = nil
    return open
  }

  /// The texts that a file consists of: its own, and those that it may include.
  func texts(of file: String) -> [[UInt8]] { [sources[file]?.bytes].compactMap(\.self) + shared.map(\.bytes) }

  func makeEvaluator() throws(PolicyFault) -> any PolicyEvaluator { try LuaEvaluator(self) }
}

extension PolicyGeneration {
  /// The statements of guarantees.lua, in the order of the file.
  package var guarantees: [Guarantee] {
    switch self {
    case let generation as Generation: generation.guarantees
    case let wrapper as any WrappingGeneration: wrapper.base.guarantees
    default: []
    }
  }

  /// The same generation with additional warnings.
  package func adding(warnings: [ConfigurationProblem]) -> any PolicyGeneration {
    guard !warnings.isEmpty, var generation = self as? Generation else { return self }
    generation.warnings = Problems.sorted(generation.warnings + warnings)
    return generation
  }
}
