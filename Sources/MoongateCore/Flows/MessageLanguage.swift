import MoongateSDK

/// The languages that messages are available in: those of the hosted pages.
package protocol MessageLanguages: Sendable {
  /// The first preferred language that is available, otherwise the first available one.
  /// - Parameters:
  ///   - wanted: BCP 47 tags, most preferred first.
  ///   - providers: the providers' texts with their translations.
  func language(_ wanted: [String], of generation: any PolicyGeneration, providers: [StepWords]) -> any MessageLanguage
}

/// A language of messages.
package protocol MessageLanguage: Sendable {
  /// The BCP 47 tag.
  var tag: String { get }
  var isRightToLeft: Bool { get }
  /// The translation of an English text of ours, an operator's or a provider's, with its {placeholders}. Returns the
  /// text itself if no translation exists.
  func translated(_ english: String) -> String
  /// A duration for display, such as "15 minutes".
  func spoken(_ duration: Duration) -> String
  /// The display name of a device, such as "Chrome on Android"; nil if the device is unknown. The name never contains
  /// text from the request.
  func device(userAgent: String?) -> String?
}

extension MessageLanguage {
  /// The translated text with its placeholders filled in.
  func text(_ english: String, _ values: KeyValuePairs<String, String>) -> String {
    // Attack: a service or name that is called {code}. Each placeholder is filled once, from left to right.
    var rest = translated(english)[...]
    var said = ""
    while let match = rest.firstMatch(of: /\{(\w+)\}/) {
      said += rest[..<match.range.lowerBound]
      let value = values.first { $0.key == match.1 }?.value
      // Phones copy and fill in the code, so no invisible character may stand beside it.
      said +=
        isRightToLeft && match.1 != "code" ? value?.isolatedForRightToLeft ?? String(match.0) : value ?? String(match.0)
      rest = rest[match.range.upperBound...]
    }
    return said + rest
  }
}

extension String {
  /// The text, isolated for use in right-to-left text, so that a phone number, a time or a name of several words keeps
  /// its own order (Unicode Standard Annex #9, "First Strong Isolate").
  package var isolatedForRightToLeft: String {
    contains { !$0.isLetter && !$0.isNumber } ? "\u{2068}\(self)\u{2069}" : self
  }
}

/// Messages in English only, for engines without pages.
package struct EnglishMessages: MessageLanguages {
  private struct English: MessageLanguage {
    let tag = "en"
    let isRightToLeft = false
    func translated(_ english: String) -> String { english }
    func spoken(_ duration: Duration) -> String { duration.spokenLength }
    func device(userAgent: String?) -> String? { nil }
  }

  package init() {}

  package func language(_ wanted: [String], of generation: any PolicyGeneration, providers: [StepWords])
    -> any MessageLanguage
  { English() }
}

/// Sends messages in one language and style.
private struct MessengerInLanguage: Messenger {
  let base: any Messenger
  let style: MessageStyle

  func send(_ message: Message) async throws(DeliveryFault) { try await base.send(message.styled(style)) }
}

extension FlowEngine {
  /// The language of messages to an account: the language of the last sign-in on a device that was used before.
  ///
  /// Attack: someone who knows a password signs in with `Accept-Language: ta`, and the owner cannot read the notice of
  /// it. A request's language counts only if the account has no language yet, or if the request comes from a device
  /// that the account has used.
  func language(for account: Account?, _ request: RequestContext) -> any MessageLanguage {
    guard let account, let kept = account.language, !keys.knows(request.device, account.id, by: nil) else {
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
  func speaking(_ messenger: any Messenger, _ language: any MessageLanguage, _ request: RequestContext) -> any Messenger
  {
    let gateway = request.generation.gateway
    let service = gateway.brand.name ?? gateway.service
    return MessengerInLanguage(
      base: messenger,
      style: MessageStyle(
        language: language.tag, isRightToLeft: language.isRightToLeft, service: service, colour: gateway.brand.primary,
        footer: language.text("This is an automatic message from {service}.", ["service": service])))
  }
}
