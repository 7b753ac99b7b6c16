import HTTPTypes
import Hummingbird
import MoongateCore

/// Chooses the language of a page. For a script, it is the language of its page; otherwise the language that the user
/// selected on a page, the browser's preference (RFC 9110, section 12.5.4), or English.
enum LanguageChoice {
  /// The cookie with the selected language. It is sent only to hosted pages and contains no personal data.
  static let cookie = "moongate-language"
  /// A year in seconds.
  private static let maxAge = 31_536_000

  static func choose(_ request: Request, chosen: String?, among languages: [Words]) -> Words? {
    if let chosen, let known = languages.first(where: { $0.tag == chosen }) { return known }
    let page = HTTPField.Name("Moongate-Language").flatMap { request.headers[$0] }
    if let page, let known = languages.first(where: { $0.tag == page }) { return known }
    if let kept = languages.first(where: { isKept($0.tag, request.headers[values: .cookie]) }) { return kept }
    return choose(accepting: request.headers[values: .acceptLanguage], among: languages)
  }

  /// The preferred languages for messages: the one that the user selected on a page, then those of the browser.
  static func wanted(by request: Request) -> [String] {
    let kept = request.headers[values: .cookie].flatMap { $0.split(separator: ";") }.map { $0.drop { $0 == " " } }
      .first { $0.hasPrefix("\(cookie)=") }.map { String($0.dropFirst(cookie.count + 1)) }
    let tags = [kept].compactMap(\.self) + wanted(request.headers[values: .acceptLanguage])
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
  static func keep(_ words: Words, isSecure: Bool) -> String {
    "\(cookie)=\(words.tag); Path=/auth; Max-Age=\(maxAge); SameSite=Lax\(isSecure ? "; Secure" : "")"
  }

  /// Whether one of the cookies (RFC 6265, section 5.4) selects the language. A forged cookie can only change the
  /// language.
  private static func isKept(_ tag: String, _ lines: [String]) -> Bool {
    lines.contains { line in line.split(separator: ";").contains { $0.drop { $0 == " " } == "\(cookie)=\(tag)" } }
  }

  /// The language tags in lower case, by descending preference. Only the first 20 are read.
  private static func wanted(_ lines: [String]) -> [String] {
    let items = lines.flatMap { $0.split(separator: ",").prefix(20) }.prefix(20)
    let weighed = items.map { item -> (tag: String, weight: Double) in
      let parts = item.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
      let weight = parts.dropFirst().compactMap { $0.hasPrefix("q=") ? Double($0.dropFirst(2)) : nil }.first ?? 1
      return (parts.first ?? "", weight)
    }
    return weighed.filter { $0.weight > 0 }.sorted { $0.weight > $1.weight }.map(\.tag)
  }
}
