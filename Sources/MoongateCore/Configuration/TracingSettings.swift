/// `tracing = otlp { … }`: where spans of requests are sent, and of how many requests.
package struct TracingSettings: Sendable, Equatable {
  /// Where batches are posted to, http or https.
  package let url: String
  /// The share of requests that are recorded, from 0 to 1.
  package let sample: Double
  package let headers: [WebhookSettings.Header]

  /// - Parameter url: without a path it gets the one of OTLP over HTTP, `/v1/traces`.
  package init(url: String, sample: Double, headers: [WebhookSettings.Header] = []) {
    let rest = url.drop { $0 != "/" }.dropFirst(2)
    let path = rest.firstIndex { "/?".contains($0) }.map { rest[$0...] } ?? ""
    self.url = path.isEmpty || path == "/" ? url + (path.isEmpty ? "/" : "") + "v1/traces" : url
    self.sample = sample
    self.headers = headers
  }
}
