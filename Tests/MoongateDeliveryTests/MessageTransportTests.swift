import Foundation
import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateDelivery

@Suite("SMS through other sites") struct MessageTransportTests {
  static let sms = Message(
    channel: .sms, to: "+919999999999", text: "532917 is your \"Moongate\" code + more & ä\n\n@example.com #532917",
    code: "532917")

  @Test(
    "a webhook receives number and text as JSON with the operator's headers; the domain-bound last line is unchanged")
  func webhook() async throws {
    let site = TestSite()
    try await site.run { _ in
      Response(status: .accepted)
    } _: { address in
      let settings = WebhookSettings(
        url: address + "/send?x=1", headers: [.init(name: "Authorization", value: SecretText("Bearer secret"))])
      try await WebhookTransport(settings: settings, web: SiteClient()).send(Self.sms)
      let asked = try #require(site.questions.first)
      #expect(asked.method == "POST")
      #expect(asked.path == "/send?x=1")
      #expect(asked.headers[.contentType] == "application/json")
      #expect(asked.headers[.authorization] == "Bearer secret")
      let json = try #require(try JSONSerialization.jsonObject(with: Data(asked.body.utf8)) as? [String: String])
      #expect(json == ["to": Self.sms.to, "text": Self.sms.text])
      #expect(json["text"]?.hasSuffix("\n@example.com #532917") == true)
    }
  }

  @Test(
    "a status other than 2xx is a failure; a refused message does not count against the site",
    arguments: [
      (301, false), (400, true), (401, false), (404, false), (422, true), (429, false), (500, false), (503, false),
    ])
  func refused(status: Int, isOfMessage: Bool) async throws {
    let site = TestSite()
    try await site.run { _ in
      Response(status: .init(code: status), headers: [.location: "/x"])
    } _: { address in
      let carrier = WebhookTransport(settings: WebhookSettings(url: address), web: SiteClient())
      await #expect(throws: TransportError("answered \(status)", isOfMessage: isOfMessage)) {
        try await carrier.send(Self.sms)
      }
      #expect(site.questions.count == 1)
    }
  }

  @Test(
    "Twilio receives a form with basic authentication; its error code is reported, its message is not",
    arguments: ["+15550100", "MG0a"])
  func twilio(from: String) async throws {
    let site = TestSite()
    try await site.run { question in
      if question.body.contains("Body=bad") {
        return Response(
          status: .badRequest,
          body: .init(byteBuffer: .init(string: #"{"code":21211,"message":"+919999999999 is not a phone number"}"#)))
      }
      return Response(status: .created)
    } _: { address in
      let carrier = TwilioTransport(
        settings: TwilioSettings(url: address, account: "AC0123", token: SecretText("to:ken"), from: from),
        web: SiteClient())
      try await carrier.send(Self.sms)
      let asked = try #require(site.questions.first)
      #expect(asked.path == "/2010-04-01/Accounts/AC0123/Messages.json")
      #expect(asked.headers[.authorization] == "Basic \(Data("AC0123:to:ken".utf8).base64EncodedString())")
      #expect(asked.headers[.contentType] == "application/x-www-form-urlencoded")
      var form: [String: String] = [:]
      for pair in asked.body.split(separator: "&") {
        let parts = pair.split(separator: "=").map { String($0).removingPercentEncoding ?? "" }
        form[parts[0]] = parts[1]
      }
      #expect(
        form == ["To": Self.sms.to, from.hasPrefix("MG") ? "MessagingServiceSid" : "From": from, "Body": Self.sms.text])
      await #expect(throws: TransportError("answered 400 (its error 21211)", isOfMessage: true)) {
        try await carrier.send(Message(channel: .sms, to: "+1", text: "bad"))
      }
    }
  }
}
