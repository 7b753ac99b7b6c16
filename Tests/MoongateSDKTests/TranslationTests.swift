import MoongateSDK
import Testing

/// Translations of a provider, and mistakes in declaring them.
@Suite struct TranslationTests {
  private func descriptor(_ translations: [String: [String: String]]) -> ProviderDescriptor {
    ProviderDescriptor(
      name: "word", beginFields: [], submitFields: [InputField(name: "word", kind: .password)], settings: [],
      policy: PolicySource(file: "policy.lua", text: ""), identifierKinds: [],
      words: StepWords(title: "Word", translations: translations))
  }

  @Test(
    "a language's own, else that of the language without its region",
    arguments: [
      ("hi", "शब्द"), ("hi-IN", "शब्द"), ("pt-BR", "palavra"), ("pt", nil), ("fr", nil), ("", nil),
    ])
  func languages(_ tag: String, _ said: String?) throws {
    let words = try #require(descriptor(["hi": ["Word": "शब्द"], "pt-BR": ["Word": "palavra"]]).words)
    #expect(words.translations(in: tag)["Word"] == said)
  }

  @Test(
    "what is wrong with them",
    arguments: [
      (
        ["english": ["Word": "Word"]],
        "its words are translated to `english`, which is not a language tag: write one such as `hi` or `pt-BR`"
      ),
      (
        ["": ["Word": "Word"]],
        "its words are translated to ``, which is not a language tag: write one such as `hi` or `pt-BR`"
      ),
      (
        ["hi/../x": ["Word": "Word"]],
        "its words are translated to `hi/../x`, which is not a language tag: write one such as `hi` or `pt-BR`"
      ),
      (["hi": ["Word": ""]], "its words in `hi` must be plain text of at most 2000 bytes each, by the English text"),
      (["hi": ["": "शब्द"]], "its words in `hi` must be plain text of at most 2000 bytes each, by the English text"),
      (
        ["hi": ["Word": "a\nb"]], "its words in `hi` must be plain text of at most 2000 bytes each, by the English text"
      ),
      (
        ["hi": ["Word": String(repeating: "a", count: 2_001)]],
        "its words in `hi` must be plain text of at most 2000 bytes each, by the English text"
      ),
    ])
  func mistakes(_ translations: [String: [String: String]], _ message: String) {
    #expect(descriptor(translations).mistakes == [message])
  }

  @Test func wellFormedTranslations() {
    #expect(
      descriptor(["hi": ["Word": String(repeating: "श", count: 600)], "zh-Hant-TW": ["Word": "字"]]).mistakes == [])
    #expect(descriptor([:]).mistakes == [])
  }
}
