import HTTPTypes
import Hummingbird
import MoongateCore

/// Chooses the language of a page. For a script, it is the language of its page; otherwise the language that the user
/// selected on a page, the browser's preference (RFC 9110, section 12.5.4), or English.
enum LanguageChoice {
  /// The cookie with the selected language. It is sent only to hosted pages and contains no personal data.
  private static let cookie = GatewayCookies.selectedLanguage
  /// A year in seconds.
  private static let maxAge = 31_536_000
  /// The time for a sign-in that an app has begun, in seconds.
  private static let signIn = 3600

  static func choose(_ request: Request, chosen: String?, among languages: [Words]) -> Words? {
    if let chosen, let known = languages.first(where: { $0.tag == chosen }) { return known }
    let page = HTTPField.Name("Moongate-Language").flatMap { request.headers[$0] }
    if let page, let known = languages.first(where: { $0.tag == page }) { return known }
    // A forged cookie can only change the language.
    let kept = request.headers.cookies(cookie)
    if let known = languages.first(where: { kept.contains($0.tag) }) { return known }
    return choose(accepting: request.headers[values: .acceptLanguage], among: languages)
  }

  /// The preferred languages for messages: the one that the user selected on a page, then those of the browser.
  static func wanted(by request: Request) -> [String] {
    let tags = request.headers.cookies(cookie).prefix(1) + wanted(request.headers[values: .acceptLanguage])
    return tags.filter(PageSet.isTag)
  }

  /// - Parameter lines: the values of `Accept-Language`.
  static func choose(accepting lines: [String], among languages: [Words]) -> Words? {
    choose(wanting: wanted(lines), among: languages)
  }

  /// - Parameter tags: the language tags by descending preference.
  static func choose(wanting tags: [String], among languages: [Words]) -> Words? {
    for tag in tags.map({ $0.lowercased() }) {
      if tag == "*" { break }
      if let exact = languages.first(where: { $0.tag.lowercased() == tag }) { return exact }
      let primary = tag.prefix { $0 != "-" }
      if let near = languages.first(where: { $0.tag.lowercased().prefix { $0 != "-" } == primary }) { return near }
    }
    return languages.first
  }

  /// The `Set-Cookie` value that stores the selection.
  ///
  /// Attack: an app chooses the language of all later sign-ins of a user. What an app asks for lasts for its sign-in.
  /// - Parameter isByUser: whether the user has selected it, and not an app.
  static func keep(_ words: Words, isByUser: Bool, isSecure: Bool) -> String {
    let age = isByUser ? maxAge : signIn
    return "\(cookie)=\(words.tag); Path=/auth; Max-Age=\(age); SameSite=Lax\(isSecure ? "; Secure" : "")"
  }

  /// The language tags in lower case, by descending preference.
  private static func wanted(_ lines: [String]) -> [String] {
    WeightedList.read(lines).filter { $0.weight > 0 }.sorted { $0.weight > $1.weight }.map(\.value)
  }
}
