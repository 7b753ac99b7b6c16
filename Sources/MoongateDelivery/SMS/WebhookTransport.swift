import Foundation
import MoongateCore
import MoongateSDK

/// `webhook { … }`: sends `{"to","text"}` by POST. A 2xx response within five seconds means that the message is
/// delivered.
struct WebhookTransport: MessageTransport {
  let settings: WebhookSettings
  let web: any WebClient

  private struct Body: Encodable {
    let to: String
    let text: String
    /// For mail only.
    let subject: String?
  }

  var site: String { SiteClient.site(of: settings.url) }
  let most = 64

  func send(_ message: Message) async throws(TransportError) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let body = try? encoder.encode(Body(to: message.to, text: message.text, subject: message.subject)) else {
      throw TransportError("the message cannot be written as JSON", isOfMessage: true)
    }
    let headers =
      [(name: "Content-Type", value: "application/json")]
      + settings.headers.map { (name: $0.name, value: $0.value.reveal()) }
    try await web.deliver(WebRequest(method: "POST", url: settings.url, headers: headers, body: Array(body)))
  }
}
