import MoongateCore
import MoongateSDK

extension PageRenderer: MessageLanguages {
  /// Messages use the languages and words of the pages.
  package func language(_ wanted: [String], of generation: any PolicyGeneration, providers: [StepWords])
    -> any MessageLanguage
  {
    let set = set(of: generation)
    return (LanguageChoice.choose(wanting: wanted, among: set.languages) ?? set.languages[0]).withTranslations(
      of: providers)
  }
}

extension Words: MessageLanguage {
  package var isRightToLeft: Bool { direction == "rtl" }

  package func spoken(_ duration: Duration) -> String { wait(duration) }

  package func device(userAgent: String?) -> String? {
    let name = DeviceName(userAgent: userAgent)
    return name.browser == nil && name.system == nil ? nil : name.text(self)
  }
}
