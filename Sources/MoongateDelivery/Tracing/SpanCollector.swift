import MoongateCore
import MoongateSDK

/// Sends batches of spans to the collector of `tracing = otlp { … }` by OTLP over HTTP, as JSON.
package struct SpanCollector: Sendable {
  private let settings: TracingSettings
  private let web: any WebClient
  private let service: String
  private let version: String
  private let instance: String

  /// - Parameters:
  ///   - service: the name of the service.
  ///   - instance: identifies this gateway instance.
  package init(_ settings: TracingSettings, web: any WebClient, service: String, version: String, instance: String) {
    self.settings = settings
    self.web = web
    self.service = service
    self.version = version
    self.instance = instance
  }

  /// - Returns: why the collector did not accept the spans; nil on success.
  package func send(_ spans: [SpanRecord]) async -> String? {
    let headers =
      [(name: "Content-Type", value: "application/json")]
      + settings.headers.map { (name: $0.name, value: $0.value.reveal()) }
    do {
      let body = try OTLPDocument(spans, service: service, version: version, instance: instance).json
      try await web.deliver(WebRequest(method: "POST", url: settings.url, headers: headers, body: body))
      return nil
    } catch {
      return "\(SiteClient.site(of: settings.url)): \((error as? TransportError)?.reason ?? "\(error)")"
    }
  }
}
