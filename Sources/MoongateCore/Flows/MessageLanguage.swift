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
    filled(translated(english), values)
  }

  /// The text with the values in place of its {placeholders}. Placeholders without a value stay.
  ///
  /// Attack: a service or name that is called {code}. Each placeholder is filled once, from left to right, so the
  /// values are never searched for placeholders.
  package func filled(_ text: String, _ values: KeyValuePairs<String, String>) -> String {
    var rest = text[...]
    var said = ""
    while let open = rest.firstIndex(of: "{") {
      said += rest[..<open]
      rest = rest[rest.index(after: open)...]
      let name = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
      guard !name.isEmpty, name.endIndex < rest.endIndex, rest[name.endIndex] == "}" else {
        said += "{"
        continue
      }
      let value = values.first { $0.key == name }?.value
      // Phones copy and fill in the code, so no invisible character may stand beside it.
      said += (isRightToLeft && name != "code" ? value?.isolatedForRightToLeft : value) ?? "{\(name)}"
      rest = rest[rest.index(after: name.endIndex)...]
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
