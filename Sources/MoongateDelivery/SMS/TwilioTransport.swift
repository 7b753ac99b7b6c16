import Foundation
import MoongateCore
import MoongateSDK

/// `twilio { … }`: a form posted to its Messages API.
struct TwilioTransport: MessageTransport {
  let settings: TwilioSettings
  let web: any WebClient

  /// What it answers where it refuses; its sentence holds the number and is not read.
  private struct Problem: Decodable { let code: Int? }

  var site: String { SiteClient.site(of: settings.url) }
  let most = 64

  func carry(_ message: Message) async throws(CarryFault) {
    // MG…: a messaging service chooses among its own numbers.
    let sender = settings.from.hasPrefix("MG") ? "MessagingServiceSid" : "From"
    let form = [("To", message.to), (sender, settings.from), ("Body", message.text)].map { "\($0)=\(Self.encoded($1))" }.joined(separator: "&")
    let credentials = Data("\(settings.account):\(settings.token.reveal())".utf8).base64EncodedString()
    let request = WebRequest(
      method: "POST", url: "\(settings.url)/2010-04-01/Accounts/\(settings.account)/Messages.json",
      headers: [("Content-Type", "application/x-www-form-urlencoded"), ("Authorization", "Basic \(credentials)"), ("Accept", "application/json")],
      body: Array(form.utf8))
    try await web.deliver(request) { answer in
      let problem = try? JSONDecoder().decode(Problem.self, from: Data(answer.body))
      return problem?.code.map { " (its error \($0))" } ?? ""
    }
  }

  /// As forms spell it (WHATWG URL, "application/x-www-form-urlencoded"); a space as %20 is read by all.
  static func encoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "*"): bytes.append(byte)
      default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
