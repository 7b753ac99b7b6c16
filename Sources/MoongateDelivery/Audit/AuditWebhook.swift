import MoongateCore
import MoongateSDK

/// `webhook { url, secret }`: sends events by POST as JSON lines. A 2xx response within five seconds means that they
/// are accepted.
///
/// `Moongate-Signature: t=1732449600,v1=…` is an HMAC-SHA256 over the time, a full stop and the body, in hexadecimal,
/// keyed with the secret. The receiver computes the same value and refuses times that are too far from its clock.
package struct AuditWebhook: AuditSink {
  private let settings: AuditWebhookSettings
  private let web: any WebClient

  package init(_ settings: AuditWebhookSettings, web: any WebClient) {
    self.settings = settings
    self.web = web
  }

  package func take(_ lines: [[UInt8]], at now: Timestamp) async throws(AuditSinkFault) {
    let body = lines.flatMap { $0 + [UInt8(ascii: "\n")] }
    let headers = [
      (name: "Content-Type", value: "application/x-ndjson"),
      (name: "Moongate-Signature", value: WebhookSignature.header(of: body, at: now, by: settings.secret)),
    ]
    do throws(TransportError) {
      try await web.deliver(WebRequest(method: "POST", url: settings.url, headers: headers, body: body))
    } catch {
      throw AuditSinkFault("\(SiteClient.site(of: settings.url)): \(error.reason)")
    }
  }
}
