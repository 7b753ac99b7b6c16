import MoongateCore

/// Reads `cookie_domain` and `domains` of gateway.lua, the domains in which sessions are valid.
struct DomainReader {
  let problems: Problems

  /// Domains under which anyone can register a name. Browsers reject cookies for them (RFC 6265, section 5.3, step 5).
  /// These are the most common ones with two labels, from the Public Suffix List.
  private static let publicSuffixes: Set<String> = [
    "ac.in", "ac.jp", "ac.nz", "ac.uk", "ac.za", "co.id", "co.il", "co.in", "co.jp", "co.ke", "co.kr", "co.nz", "co.th",
    "co.uk", "co.za", "com.ar",
    "com.au", "com.bd", "com.br", "com.cn", "com.co", "com.eg", "com.hk", "com.mx", "com.my", "com.ng", "com.np",
    "com.pe", "com.ph", "com.pk",
    "com.pl", "com.sa", "com.sg", "com.tr", "com.tw", "com.ua", "com.vn", "edu.au", "gov.au", "gov.in", "gov.uk",
    "ne.jp", "net.au", "net.br",
    "net.in", "net.nz", "net.uk", "or.jp", "org.au", "org.br", "org.in", "org.nz", "org.uk", "org.za", "github.io",
    "gitlab.io", "netlify.app",
    "pages.dev", "vercel.app", "workers.dev",
  ]

  /// - Returns: the root domain of `public_url`, if one is named, and all of `domains`.
  func read(_ reader: TableReader, _ publicURL: PublicURL?) -> (own: String?, all: [String]) {
    let single = reader.take("cookie_domain")
    guard let node = reader.take("domains") else { return (single.flatMap { readCookieDomain($0, publicURL) }, []) }
    let all = readDomains(node)
    if let single, let other = Field.text(single, "cookie_domain", problems) {
      let both = all.contains(other) ? all : [other] + all
      problems.add(
        single.location, "cookie_domain",
        "conflicts with `domains`, which replaces it; write domains = { \(both.map { "\"\($0)\"" }.joined(separator: ", ")) }, and remove this line"
      )
    }
    guard !all.isEmpty, let publicURL else { return (nil, all) }
    guard let own = all.first(where: { Self.contains($0, publicURL.host) }) else {
      problems.add(
        node.location, "domains",
        "public_url's host \"\(publicURL.host)\" is not under any of them: users sign in there, so add its root domain"
      )
      return (nil, all)
    }
    return (own, all)
  }

  /// Whether the host is the domain itself or a subdomain.
  static func contains(_ domain: String, _ host: String) -> Bool { host == domain || host.hasSuffix("." + domain) }

  private func readCookieDomain(_ node: LuaNode, _ publicURL: PublicURL?) -> String? {
    guard let text = Field.text(node, "cookie_domain", problems), isDomain(text, node, "cookie_domain") else {
      return nil
    }
    if let publicURL, !Self.contains(text, publicURL.host) {
      problems.add(
        node.location, "cookie_domain",
        "public_url's host \"\(publicURL.host)\" is not \(text) or below it, so browsers would reject the cookie")
      return nil
    }
    return text
  }

  private func readDomains(_ node: LuaNode) -> [String] {
    guard let texts = Field.texts(node, "domains", problems) else { return [] }
    if texts.isEmpty {
      problems.add(
        node.location, "domains", "is empty: name the root domains, as in { \"example.com\", \"example.org\" }")
    }
    var all: [String] = []
    for (index, item) in texts.enumerated() {
      let path = "domains[\(index + 1)]"
      guard isDomain(item.text, item.node, path) else { continue }
      if all.contains(item.text) {
        problems.add(item.node.location, path, "\"\(item.text)\" is listed twice")
      } else if let outer = all.first(where: { Self.contains($0, item.text) }) {
        problems.add(
          item.node.location, path,
          "\"\(item.text)\" is below \"\(outer)\", whose sessions are already valid there: remove it")
      } else if let inner = all.first(where: { Self.contains(item.text, $0) }) {
        problems.add(
          item.node.location, path,
          "\"\(inner)\" is below \"\(item.text)\", whose sessions are already valid there: remove \"\(inner)\"")
      } else {
        all.append(item.text)
      }
    }
    return all
  }

  private func isDomain(_ text: String, _ node: LuaNode, _ path: String) -> Bool {
    guard let host = HostName(text), host.port == nil, host.name == text, text.contains("."), !text.hasPrefix("["),
      IPAddressText.parse(Array(text.utf8)) == nil
    else {
      problems.add(
        node.location, path,
        "\"\(text)\" is not a domain, such as \"example.com\": lower case, without port or leading dot")
      return false
    }
    guard !Self.publicSuffixes.contains(text) else {
      problems.add(
        node.location, path,
        "\"\(text)\" is a public suffix, under which anyone can register a domain: browsers reject cookies for it; use your own domain"
      )
      return false
    }
    return true
  }
}
