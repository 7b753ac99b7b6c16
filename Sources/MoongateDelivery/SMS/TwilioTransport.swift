import Foundation
import MoongateCore
import MoongateSDK

/// `twilio { … }`: sends messages through Twilio's Messages API.
struct TwilioTransport: MessageTransport {
  let settings: TwilioSettings
  let web: any WebClient

  /// The error code of a refusal. The error text contains the phone number and is not read.
  private struct Problem: Decodable { let code: Int? }

  var site: String { SiteClient.site(of: settings.url) }
  let most = 64

  func send(_ message: Message) async throws(TransportError) {
    // MG…: a messaging service, which selects one of its numbers.
    let sender = settings.from.hasPrefix("MG") ? "MessagingServiceSid" : "From"
    let form = PercentEncoding.form([("To", message.to), (sender, settings.from), ("Body", message.text)])
    let credentials = Data("\(settings.account):\(settings.token.reveal())".utf8).base64EncodedString()
    let request = WebRequest(
      method: "POST", url: "\(settings.url)/2010-04-01/Accounts/\(settings.account)/Messages.json",
      headers: [
        ("Content-Type", "application/x-www-form-urlencoded"), ("Authorization", "Basic \(credentials)"),
        ("Accept", "application/json"),
      ],
      body: Array(form.utf8))
    try await web.deliver(request) { answer in
      let problem = try? JSONDecoder().decode(Problem.self, from: Data(answer.body))
      return problem?.code.map { " (its error \($0))" } ?? ""
    }
  }
}
