import HTTPTypes
import Hummingbird
import MoongateCore

/// In which of the languages a page is shown: for a script the language of its page; else the one that the person chose
/// on a page, or what their browser asks for (RFC 9110 section 12.5.4), else English.
enum LanguageChoice {
  /// Keeps what was chosen. It is sent to our own pages only, and says nothing about anybody.
  static let cookie = "moongate-language"
  /// A year.
  private static let memory = 31_536_000

  static func choose(_ request: Request, chosen: String?, among languages: [Words]) -> Words? {
    if let chosen, let known = languages.first(where: { $0.tag == chosen }) { return known }
    let page = HTTPField.Name("Moongate-Language").flatMap { request.headers[$0] }
    if let page, let known = languages.first(where: { $0.tag == page }) { return known }
    if let kept = languages.first(where: { isKept($0.tag, request.headers[values: .cookie]) }) { return kept }
    return choose(accepting: request.headers[values: .acceptLanguage], among: languages)
  }

  /// What the person has chosen on a page, and then what the browser asks for; for messages, which are in the language
  /// of the pages.
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

  /// - Parameter tags: the most wanted first.
  static func choose(wanting tags: [String], among languages: [Words]) -> Words? {
    for tag in tags.map({ $0.lowercased() }) {
      if tag == "*" { break }
      if let exact = languages.first(where: { $0.tag.lowercased() == tag }) { return exact }
      let primary = tag.prefix { $0 != "-" }
      if let near = languages.first(where: { $0.tag.lowercased().prefix { $0 != "-" } == primary }) { return near }
    }
    return languages.first
  }

  /// The line of `Set-Cookie` that keeps a choice.
  static func keep(_ words: Words, isSecure: Bool) -> String {
    "\(cookie)=\(words.tag); Path=/auth; Max-Age=\(memory); SameSite=Lax\(isSecure ? "; Secure" : "")"
  }

  /// Whether one of the cookies (RFC 6265 section 5.4) says so. It opens nothing: whoever planted it has chosen a
  /// language.
  private static func isKept(_ tag: String, _ lines: [String]) -> Bool {
    lines.contains { line in line.split(separator: ";").contains { $0.drop { $0 == " " } == "\(cookie)=\(tag)" } }
  }

  /// Tags in lower case, the most wanted first. Bounded: a header of ten thousand tags is nobody's wish.
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
