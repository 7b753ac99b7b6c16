import Foundation
import HTTPTypes
import MoongateCore
import MoongateHTTP
import MoongateSDK
import MoongateTesting
import PhoneOTP
import Synchronization
import Testing

/// A messenger whose delivery fails on demand, with a reason of its own.
private final class Messenger: CodeProvider {
  static let name = ProviderName(test: "whatsapp_code")
  let isDown = Atomic<Bool>(false)
  let codes = Mutex<[String]>([])
  private let reader = PhoneOTP()

  var descriptor: ProviderDescriptor {
    ProviderDescriptor(
      name: Self.name, beginFields: reader.descriptor.beginFields, submitFields: reader.descriptor.submitFields,
      settings: [],
      policy: PolicySource(file: "toy.lua", text: ""), identifierKinds: [.phone],
      deliveryReasons: [DeliveryReason("not_on_whatsapp", "This number is not on WhatsApp.", isPermanent: true)],
      words: StepWords(
        title: "WhatsApp", name: "Code by WhatsApp",
        translations: ["hi": ["This number is not on WhatsApp.": "यह नंबर व्हाट्सऐप पर नहीं है।"]]),
      entrance: .field(kind: .phone, priority: 100))
  }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try reader.readIdentifier(input) }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    if isDown.load(ordering: .relaxed) { throw DeliveryFault("not_on_whatsapp", "error 131026") }
    codes.withLock { $0.append(code.code) }
  }
}

/// What pages and apps show for a fallback step and for a failed delivery.
@Suite struct FallbackPageTests {
  private func gateway(_ messenger: Messenger, isFallback: Bool) throws -> HTTPGateway {
    let phone = ProviderName(test: "phone_otp")
    return try HTTPGateway(providers: [messenger, PhoneOTP()]) { generation in
      let choices = isFallback ? [Messenger.name, phone] : [Messenger.name]
      for (name, account) in [("login", AccountRule.existing), ("register", .new), ("enter", .any)] {
        generation.flows[name] = .test(
          name, account: account,
          steps: [StepRule(choices: choices, isSkippable: false, when: nil, isFallback: isFallback)])
      }
    }
  }

  @Test func pageShowsTheDeclaredReason() async throws {
    let messenger = Messenger()
    messenger.isDown.store(true, ordering: .relaxed)
    try await gateway(messenger, isFallback: false).run { client in
      for (language, sentence) in [("en", "This number is not on WhatsApp."), ("hi", "यह नंबर व्हाट्सऐप पर नहीं है।")] {
        let browser = Browser(client)
        try await browser.visit("/auth/login?flow=enter")
        if language != "en" { _ = try await browser.turns(to: language, [:]) }
        let refused = try await browser.submit(["phone": "9999999999"])
        #expect(refused.status == 503 && refused.text.contains(sentence), "\(refused.text)")
      }
    }
  }

  @Test func apiReturnsTheDeclaredReason() async throws {
    let messenger = Messenger()
    messenger.isDown.store(true, ordering: .relaxed)
    try await gateway(messenger, isFallback: false).run { client in
      let created = try await client.send(
        .post, "/api/auth/flows", headers: [("Content-Type", "application/json")], body: #"{"flow":"enter"}"#)
      let id = try #require(created.json["id"] as? String)
      let refused = try await client.send(
        .post, "/api/auth/flows/\(id)/begin", headers: [("Content-Type", "application/json")],
        body: #"{"phone":"9999999999"}"#)
      #expect(refused.status == 503)
      #expect(
        refused.json["code"] as? String == "delivery_failed" && refused.json["reason"] as? String == "not_on_whatsapp")
      #expect(refused.json["permanent"] as? Bool == true && refused.json["provider"] as? String == "whatsapp_code")
      #expect(refused.json["detail"] as? String == "This number is not on WhatsApp.")
    }
  }

  @Test func pageOffersTheOtherProviderAndTakesEitherCode() async throws {
    let messenger = Messenger()
    try await gateway(messenger, isFallback: true).run { client in
      let browser = Browser(client)
      try await browser.visit("/auth/login?flow=enter")
      let begun = try await browser.submit(["phone": "9999999999"])
      let address = try #require(begun.header("Location"))
      #expect(address.hasPrefix("/auth/step/whatsapp_code?id="))
      let page = try await browser.visit(address)
      #expect(page.text.contains(#"<input type="hidden" name="provider" value="phone_otp">"#), "\(page.text)")
      #expect(page.text.contains(#"name="action" value="instead""#) && page.text.contains(" instead</button>"))
      let switched = try await browser.submit(["action": "instead", "provider": "phone_otp"])
      let next = try #require(switched.header("Location"))
      #expect(next.hasPrefix("/auth/verify?id=") && next.hasSuffix("&sent=1"), "\(next)")
      #expect(client.gateway.sent == 1)
      let other = try await browser.visit(next)
      #expect(other.text.contains("Code sent!") && other.text.contains("Code by WhatsApp instead"))
      let done = try await browser.submit(["code": try #require(messenger.codes.withLock { $0.last })])
      #expect(done.status == 303, "\(done.text)")
    }
  }

  @Test func apiReturnsTheFallbacksOfAStep() async throws {
    let messenger = Messenger()
    try await gateway(messenger, isFallback: true).run { client in
      let json = [("Content-Type", "application/json")]
      let created = try await client.send(.post, "/api/auth/flows", headers: json, body: #"{"flow":"enter"}"#)
      #expect(created.json["choices"] as? [String] == ["whatsapp_code"])
      let id = try #require(created.json["id"] as? String)
      let begun = try await client.send(
        .post, "/api/auth/flows/\(id)/begin", headers: json, body: #"{"phone":"9999999999"}"#)
      let step = try #require(begun.json["step"] as? [String: Any])
      #expect(step["provider"] as? String == "whatsapp_code" && step["fallbacks"] as? [String] == ["phone_otp"])
      let other = try await client.send(
        .post, "/api/auth/flows/\(id)/begin", headers: json, body: #"{"provider":"phone_otp"}"#)
      #expect((other.json["step"] as? [String: Any])?["provider"] as? String == "phone_otp")
    }
  }
}
