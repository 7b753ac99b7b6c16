import MoongateSDK

extension FlowEngine {
  /// Whom a visit may ask: the providers of this program, and those that its generation brought with it. A visit that
  /// began before a switch goes on with those of before.
  func registry(_ request: RequestContext) -> ProviderRegistry { request.generation.registry ?? providers }
}
