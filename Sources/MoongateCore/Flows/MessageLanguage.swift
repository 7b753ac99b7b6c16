import MoongateSDK

/// The languages that messages can be in: those of the hosted pages.
package protocol MessageLanguages: Sendable {
  /// The first of the wanted languages that is offered, else the first one that is.
  /// - Parameters:
  ///   - wanted: tags (BCP 47), the most wanted first.
  ///   - providers: what the providers say, with their translations.
  func language(_ wanted: [String], of generation: any PolicyGeneration, providers: [StepWords]) -> any MessageLanguage
}

/// One language of messages.
package protocol MessageLanguage: Sendable {
  /// BCP 47.
  var tag: String { get }
  var isRightToLeft: Bool { get }
  /// An English text of ours, an operator's or a provider's in this language, its {braces} still in it; the text itself
  /// where no translation is known.
  func translated(_ english: String) -> String
  /// A time for a person: "15 minutes".
  func spoken(_ duration: Duration) -> String
  /// What a device is called, such as "Chrome on Android"; nil where nothing is known of it. No text of the request's
  /// own is in it.
  func device(userAgent: String?) -> String?
}

extension MessageLanguage {
  /// The text with its braces filled in.
  func text(_ english: String, _ values: KeyValuePairs<String, String>) -> String {
    // Attack: a service or name that is called {code}. Each brace is filled once, from left to right.
    var rest = translated(english)[...]
    var said = ""
    while let match = rest.firstMatch(of: /\{(\w+)\}/) {
      said += rest[..<match.range.lowerBound]
      let value = values.first { $0.key == match.1 }?.value
      // A code is copied and filled in by phones: nothing invisible stands beside it.
      said +=
        isRightToLeft && match.1 != "code" ? value?.isolatedForRightToLeft ?? String(match.0) : value ?? String(match.0)
      rest = rest[match.range.upperBound...]
    }
    return said + rest
  }
}

extension String {
  /// The text as a part of a text that runs from right to left: a phone number, a time or a name of several words keeps
  /// its own order (Unicode Standard Annex #9, "First Strong Isolate").
  package var isolatedForRightToLeft: String {
    contains { !$0.isLetter && !$0.isNumber } ? "\u{2068}\(self)\u{2069}" : self
  }
}

/// Where there are no pages: everything in English.
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

/// Sends what is in one language.
private struct MessengerInLanguage: Messenger {
  let base: any Messenger
  let style: MessageStyle

  func send(_ message: Message) async throws(DeliveryFault) { try await base.send(message.styled(style)) }
}

extension FlowEngine {
  /// The language of messages to an account: the one in which its person signed in last on a device that they had used
  /// before.
  ///
  /// Attack: somebody who knows a password signs in with `Accept-Language: ta`, and the owner cannot read the notice of
  /// it. A request decides only where the account has no language yet, or where it comes from a device that has passed
  /// for the account.
  func language(for account: Account?, _ request: RequestContext) -> any MessageLanguage {
    guard let account, let kept = account.language, !keys.knows(request.device, account.id, by: nil) else {
      return language(request.client.languages, request)
    }
    return language([kept], request)
  }

  /// The language of messages that tell the owner of something that somebody has done.
  func noticeLanguage(of account: Account, _ request: RequestContext) -> any MessageLanguage {
    language(account.language.map { [$0] } ?? [], request)
  }

  func language(_ wanted: [String], _ request: RequestContext) -> any MessageLanguage {
    languages.language(
      wanted, of: request.generation,
      providers: registry(request).all.compactMap { registry(request).descriptor($0.descriptor.name)?.words })
  }

  /// The language that an account has after a sign-in; nil where it keeps the one that it has.
  func languageToKeep(for account: Account, isNew: Bool, isNewDevice: Bool, _ request: RequestContext) -> String? {
    guard isNew || account.language == nil || !isNewDevice, !request.client.languages.isEmpty else { return nil }
    let tag = language(request.client.languages, request).tag
    return tag == account.language ? nil : tag
  }

  /// A messenger that says in which language a message is and what it looks like.
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
