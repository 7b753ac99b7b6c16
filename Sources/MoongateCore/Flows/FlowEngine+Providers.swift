import MoongateSDK

extension FlowEngine {
  /// The providers for a request: those built into this program and those of its generation. A request that began
  /// before a change of the configuration keeps the providers it began with.
  func registry(_ request: RequestContext) -> ProviderRegistry { request.generation.registry ?? providers }
}
