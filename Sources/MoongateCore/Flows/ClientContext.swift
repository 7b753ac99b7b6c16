import MoongateSDK

/// What the core is told of the client of one request.
package struct ClientContext: Sendable {
  /// Names this request's decision; a refusal carries it.
  package let decision: DecisionID
  package let address: ClientAddress
  package let userAgent: String?
  /// The hash of the `moongate-flow` cookie, where there is one. A flow that began in a browser is that browser's alone.
  package let browser: TokenHash?
  /// The live session that came with the request, where there is one.
  package let session: SessionSnapshot?
  /// What the device carries from sign-ins before (`DeviceToken`), as it was sent: any text.
  package let device: SecretText?

  package init(
    decision: DecisionID, address: ClientAddress, userAgent: String?, browser: TokenHash?, session: SessionSnapshot?, device: SecretText? = nil
  ) {
    self.decision = decision
    self.address = address
    self.userAgent = userAgent
    self.browser = browser
    self.session = session
    self.device = device
  }
}

/// The providers of this program, in the order of its list.
package struct ProviderRegistry: Sendable {
  package let all: [any Provider]
  private let byName: [ProviderName: any Provider]

  /// - Throws: the name that two of them have.
  package init(_ providers: [any Provider]) throws(DuplicateProvider) {
    var byName: [ProviderName: any Provider] = [:]
    for provider in providers where byName.updateValue(provider, forKey: provider.descriptor.name) != nil {
      throw DuplicateProvider(name: provider.descriptor.name)
    }
    all = providers
    self.byName = byName
  }

  package subscript(name: ProviderName) -> (any Provider)? { byName[name] }

  /// Whoever can help while an identifier of the kind is typed.
  package func formatter(for kind: IdentifierKind) -> (any IdentifierFormatting)? {
    all.lazy.compactMap { $0 as? any IdentifierFormatting }.first { $0.identifierKind == kind }
  }
}

/// Two providers of one name.
package struct DuplicateProvider: Error, Sendable, Equatable {
  package let name: ProviderName
}

/// Where messages leave, by what gateway.lua says.
package protocol DeliveryService: Sendable {
  func messenger(for settings: DeliverySettings) -> any Messenger
}
