import MoongateSDK

/// Sends messages in one language and style.
private struct MessengerInLanguage: Messenger {
  let base: any Messenger
  let style: MessageStyle

  func send(_ message: Message) async throws(DeliveryFault) { try await base.send(message.styled(style)) }
}

/// Chooses by which messenger and in which language messages are sent.
struct Messengers: FlowPart {
  let services: FlowServices
  let delivery: any DeliveryService
  /// The languages that messages are available in.
  let languages: any MessageLanguages

  /// The language of messages to an account: the language of the last sign-in on a device that was used before.
  ///
  /// Attack: someone who knows a password signs in with `Accept-Language: ta`, and the owner cannot read the notice of
  /// it. A request's language counts only if the account has no language yet, or if the request comes from a device
  /// that the account has used.
  func language(for account: Account?, _ request: RequestContext) -> any MessageLanguage {
    guard let account, let kept = account.language, !keys.knows(request.device, account, by: nil) else {
      return language(request.client.languages, request)
    }
    return language([kept], request)
  }

  /// The language of notices to the account's owner.
  func noticeLanguage(of account: Account, _ request: RequestContext) -> any MessageLanguage {
    language(account.language.map { [$0] } ?? [], request)
  }

  func language(_ wanted: [String], _ request: RequestContext) -> any MessageLanguage {
    languages.language(
      wanted, of: request.generation,
      providers: registry(request).all.compactMap { registry(request).descriptor($0.descriptor.name)?.words })
  }

  /// The language to store for an account after a sign-in; nil to keep the current one.
  func languageToKeep(for account: Account, isNew: Bool, isNewDevice: Bool, _ request: RequestContext) -> String? {
    guard isNew || account.language == nil || !isNewDevice, !request.client.languages.isEmpty else { return nil }
    let tag = language(request.client.languages, request).tag
    return tag == account.language ? nil : tag
  }

  /// A messenger that adds the language and style to each message.
  func localized(_ messenger: any Messenger, _ language: any MessageLanguage, _ request: RequestContext)
    -> any Messenger
  {
    let gateway = request.generation.gateway
    let service = gateway.brand.name ?? gateway.service
    return MessengerInLanguage(
      base: messenger,
      style: MessageStyle(
        language: language.tag, isRightToLeft: language.isRightToLeft, service: service, colour: gateway.brand.primary,
        footer: language.text("This is an automatic message from {service}.", ["service": service])))
  }

  /// The messenger that gateway.lua configures for a provider's messages.
  func messenger(for provider: any Provider, _ request: RequestContext) -> (any Messenger)? {
    let settings = request.generation.gateway.providers[provider.descriptor.name]
    let names = provider.descriptor.settings.compactMap { if case .messages = $0.kind { $0.name } else { nil } }
    return names.lazy.compactMap { settings?.deliveries[$0] }.first.map(delivery.messenger(for:)).map { messenger in
      localized(messenger, request.messageLanguage ?? language(request.client.languages, request), request)
    }
  }

  /// The messenger of the first provider that sends by this channel.
  func messenger(by channel: MessageChannel, _ request: RequestContext) -> (any Messenger)? {
    for provider in registry(request).all {
      let settings = request.generation.gateway.providers[provider.descriptor.name]
      for field in provider.descriptor.settings {
        if case .messages(channel) = field.kind, let way = settings?.deliveries[field.name] {
          return delivery.messenger(for: way)
        }
      }
    }
    return nil
  }
}
