import MoongateSDK

/// What the core is told of the client of one request.
package struct ClientContext: Sendable {
  /// Names this request's decision; a refusal carries it.
  package let decision: DecisionID
  package let address: ClientAddress
  package let userAgent: String?
  /// Whether a hosted page asks, or the API.
  package enum EntryPoint: Sendable {
    case page, api
  }

  /// The hash of the `moongate-flow` cookie, where there is one. A flow that began in a browser is that browser's
  /// alone.
  package var browser: TokenHash?
  /// The live session that came with the request, where there is one.
  package var session: SessionSnapshot?
  /// What the device carries from sign-ins before (`DeviceToken`), as it was sent: any text.
  package let device: SecretText?
  package let entryPoint: EntryPoint
  /// The languages that the person wants, by their tags (BCP 47), the most wanted first.
  package var languages: [String] = []

  package init(
    decision: DecisionID, address: ClientAddress, userAgent: String?, browser: TokenHash?, session: SessionSnapshot?,
    device: SecretText? = nil,
    entryPoint: EntryPoint = .api
  ) {
    self.decision = decision
    self.address = address
    self.userAgent = userAgent
    self.browser = browser
    self.session = session
    self.device = device
    self.entryPoint = entryPoint
  }
}

/// Where messages leave, by what gateway.lua says.
package protocol DeliveryService: Sendable {
  func messenger(for settings: DeliverySettings) -> any Messenger
}
