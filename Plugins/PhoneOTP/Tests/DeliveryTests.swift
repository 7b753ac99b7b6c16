import MoongateSDK
import PhoneOTP
import Testing

@Suite("The SMS") struct DeliveryTests {
  let code = CodeMessage(
    code: "532917", text: "532917 is your Moongate verification code", domainBoundLine: "@localhost #532917",
    service: "Moongate")

  @Test("ends with the domain-bound line") func text() async throws {
    let messenger = RecordingMessenger()
    let identifier = try PhoneOTP().readIdentifier(.typed("+91 99999-99999"))
    try await PhoneOTP().deliver(code, to: identifier, with: .sending(by: messenger))
    let sent = try #require(await messenger.sent.first)
    #expect(sent.channel == .sms)
    #expect(sent.to == "+919999999999")
    #expect(sent.text == "532917 is your Moongate verification code\n@localhost #532917")
    #expect(sent.code == "532917")
    #expect(sent.subject == nil)
  }

  @Test("without a delivery channel in gateway.lua it fails") func noWay() async throws {
    let identifier = try PhoneOTP().readIdentifier(.typed("9999999999"))
    await #expect(throws: DeliveryFault.self) {
      try await PhoneOTP().deliver(code, to: identifier, with: .sending(by: nil))
    }
  }

  @Test("a delivery failure is passed on unchanged") func fault() async throws {
    let messenger = RecordingMessenger(fault: DeliveryFault(reason: "no network"))
    let identifier = try PhoneOTP().readIdentifier(.typed("9999999999"))
    await #expect(throws: DeliveryFault(reason: "no network")) {
      try await PhoneOTP().deliver(code, to: identifier, with: .sending(by: messenger))
    }
  }
}

private struct NoWeb: WebClient {
  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer { throw WebFault(reason: "no web") }
}

extension StepTools {
  /// The tools for a delivery.
  static func sending(by messenger: (any Messenger)?) -> StepTools {
    StepTools(randomBytes: { _ in [] }, web: NoWeb(), messenger: messenger)
  }
}

/// Stores or refuses all messages.
actor RecordingMessenger: Messenger {
  private(set) var sent: [Message] = []
  private let fault: DeliveryFault?

  init(fault: DeliveryFault? = nil) { self.fault = fault }

  func send(_ message: Message) async throws(DeliveryFault) {
    if let fault { throw fault }
    sent.append(message)
  }
}
