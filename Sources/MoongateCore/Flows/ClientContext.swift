import MoongateSDK

/// What the core knows about the client of one request.
package struct ClientContext: Sendable {
  /// Identifies this request's decision. A refusal includes it.
  package let decision: DecisionID
  package let address: ClientAddress
  /// Where the address is; nil: as the databases of the generation tell. Set for clients that are made up.
  package var place: ClientPlace?
  package let userAgent: String?
  /// Whether the request comes from a hosted page or from the API.
  package enum EntryPoint: Sendable {
    case page, api
  }

  /// The hash of the `moongate-flow` cookie, if the request has one. A flow that began in a browser belongs to that
  /// browser only.
  package var browser: TokenHash?
  /// The live session that came with the request, if any.
  package var session: SessionSnapshot?
  /// The session token of the request, whether or not its session is live.
  package var sessionToken: TokenHash?
  /// The device token of earlier sign-ins (`DeviceToken`) as the client sent it. Not validated.
  package let device: SecretText?
  /// The cookie with the apps that the browser's user has allowed (`RememberedApps`) as the client sent it. Not
  /// validated.
  package var allowedApps: SecretText?
  package let entryPoint: EntryPoint
  /// The choice of the user, by this request, to stay signed in; nil: the request says nothing.
  package var remember: Bool?
  /// The code of the invitation with which a flow is to begin; nil: none.
  package var invitation: SecretText?
  /// The languages that the user prefers, as BCP 47 tags, most preferred first.
  package var languages: [String] = []

  /// More than five parameters: one for each part of the request.
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

  /// The same client with the user's choice to stay signed in.
  package func remembering(_ choice: Bool?) -> ClientContext {
    var client = self
    client.remember = choice
    return client
  }

  /// The same client with the code of an invitation.
  package func invited(by code: SecretText?) -> ClientContext {
    var client = self
    client.invitation = code
    return client
  }
}

/// Provides the messenger for the delivery settings of `gateway.lua`.
package protocol DeliveryService: Sendable {
  func messenger(for settings: DeliverySettings) -> any Messenger
}
