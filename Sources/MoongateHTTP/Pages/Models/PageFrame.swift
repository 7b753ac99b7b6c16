/// What `layout.mustache` shows: the layout around the content of every page.
struct PageFrame: Decodable {
  struct Language: Decodable {
    let tag: String
    let name: String
    let address: String
    let isCurrent: Bool
    /// Whether the page's form is sent there, with its input.
    let takesForm: Bool
  }

  let title: String
  /// The name of the service.
  let service: String
  let language: String
  let direction: String
  /// The base path of stylesheets and scripts.
  let base: String
  let hasBrandStyle: Bool
  let logo: String?
  /// Which app the flow of the page is for; nil for none.
  let app: String?
  /// The target of "Contact us"; nil if none is configured.
  let support: String?
  /// The operator's terms of service.
  let terms: String?
  /// The operator's privacy policy.
  let privacy: String?
  let hasLegal: Bool
  let languages: [Language]
  /// The language's own name for itself.
  let languageName: String
  /// Whether there is more than one language to choose from.
  let hasChoice: Bool
  /// Whether the languages are shown as a menu instead of a row.
  let hasMenu: Bool
  let hasScript: Bool
  /// Where scripts report events; nil: they report none.
  let events: String?
  /// The page's kind for scripts and the stylesheet.
  let kind: String
}
