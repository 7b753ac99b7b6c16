/// `tracing = otlp { … }`: where request spans are sent, and the share of requests that are traced.
package struct TracingSettings: Sendable, Equatable {
  /// The URL to which batches are posted, http or https.
  package let url: String
  /// The share of traced requests, from 0 to 1.
  package let sample: Double
  package let headers: [WebhookSettings.Header]

  /// - Parameter url: without a path, OTLP's default `/v1/traces` is added.
  package init(url: String, sample: Double, headers: [WebhookSettings.Header] = []) {
    let rest = url.drop { $0 != "/" }.dropFirst(2)
    let path = rest.firstIndex { "/?".contains($0) }.map { rest[$0...] } ?? ""
    self.url = path.isEmpty || path == "/" ? url + (path.isEmpty ? "/" : "") + "v1/traces" : url
    self.sample = sample
    self.headers = headers
  }
}
