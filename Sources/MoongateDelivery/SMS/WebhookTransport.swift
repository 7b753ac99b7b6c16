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

extension WebClient {
  /// Sends a request whose response body is ignored.
  /// - Throws: an error if the status is not 2xx. 400 and 422 concern the message; other statuses concern the site or
  ///   its settings.
  func deliver(_ request: WebRequest, describing describe: (WebAnswer) -> String = { _ in "" })
    async throws(TransportError)
  {
    let answer: WebAnswer
    do throws(WebFault) { answer = try await send(request) } catch {
      throw TransportError(SiteClient.withoutSite(error.reason, of: request.url))
    }
    guard (200..<300).contains(answer.status) else {
      throw TransportError(
        "answered \(answer.status)\(describe(answer))", isOfMessage: [400, 422].contains(answer.status))
    }
  }
}
