import Foundation

/// `/` and `/home`: shows the user.
enum HomePage {
  static func html(_ visitor: Visitor) -> String {
    let known = visitor.account != nil
    return Page.html(
      title: "Home",
      body: """
        <p class="eyebrow">The service behind the gateway</p>
        <h1>\(known ? "You are in." : "Hello.")</h1>
        \(Page.reminder(visitor, returnTo: "/home"))
        <p class="lead">\(known ? "The gateway proved that you are" : "The gateway treats you as") <strong>\(Page.escape(visitor.title))</strong>.</p>
        \(Page.facts(visitor))
        <nav>\(known ? "<a class=\"button\" href=\"/auth/account?return_to=%2Fhome\">Your account</a> <a class=\"button\" href=\"/auth/logout?return_to=%2F\">Sign out</a>" : "<a class=\"button\" href=\"/auth/login?return_to=%2F\">Sign in</a>")</nav>
        <details>
          <summary>The \(visitor.headers.count) headers of this request</summary>
          <table>\(visitor.headers.map { "<tr><th scope=\"row\">\(Page.escape($0.name))</th><td>\(Page.escape($0.value))</td></tr>" }.joined())</table>
        </details>
        """)
  }
}

/// `/profile-setup`: the first page of a new account.
enum ProfileSetupPage {
  /// - Parameter returnTo: the original target of the user, from the gateway.
  static func html(_ visitor: Visitor, returnTo: String?) -> String {
    let target = returnTo.flatMap(localPath) ?? "/home"
    return Page.html(
      title: "Your profile",
      body: """
        <p class="eyebrow">A new account</p>
        <h1>Welcome!</h1>
        \(Page.reminder(visitor, returnTo: target))
        <p class="lead">Your service can ask new users for details here. This demo asks for nothing.</p>
        \(Page.facts(visitor))
        <nav><a class="button" id="continue" href="\(Page.escape(target))">Continue</a></nav>
        """)
  }

  /// Attack: browsers treat `//evil.example`, `/\\evil.example` and `/<tab>/evil.example` as other hosts. Only plain
  /// local paths are accepted. The gateway has checked the path too, but this page does not rely on it.
  static func localPath(_ text: String) -> String? {
    guard text.utf8.first == UInt8(ascii: "/"), text.utf8.dropFirst().first != UInt8(ascii: "/"),
      text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "\\") })
    else { return nil }
    return text
  }
}

/// The layout of both pages.
enum Page {
  static func html(title: String, body: String) -> String {
    """
    <!doctype html>
    <html lang="en">
    <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="color-scheme" content="light dark">
      <title>\(escape(title)) · Demo service</title>
      <link rel="stylesheet" href="/assets/demo.css">
    </head>
    <body>
      <main>
    \(body)
      </main>
    </body>
    </html>

    """
  }

  /// A reminder for users with an unverified email address, with a link to the gateway's page, which leads back here.
  static func reminder(_ visitor: Visitor, returnTo: String) -> String {
    guard visitor.hasUnverifiedEmail else { return "" }
    // Foundation's encoding, not the SDK's: like any service, the demo uses nothing of the gateway.
    let back = returnTo.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    return """
      <p class="banner" role="status">Your email address is not verified yet. <a href="/auth/email?return_to=\(back)">Verify Your Email</a></p>
      """
  }

  /// The facts about the user from the gateway.
  static func facts(_ visitor: Visitor) -> String {
    let assertion = visitor.assertion
    let rows: [(String, String?)] = [
      ("Account", visitor.account), ("Phone", visitor.phone), ("Email", visitor.email),
      ("Steps", assertion?.steps.map { $0.joined(separator: ", ") }),
      ("Signed in at", assertion?.authenticatedAt.map(moment)),
      ("Issued by", assertion?.issuer),
    ]
    let shown = rows.compactMap { name, value in value.map { "<div><dt>\(name)</dt><dd>\(escape($0))</dd></div>" } }
    return shown.isEmpty ? "" : "<dl>\(shown.joined())</dl>"
  }

  /// Escapes text for HTML.
  static func escape(_ text: String) -> String {
    var escaped = ""
    for character in text.unicodeScalars {
      switch character {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      case "'": escaped += "&#39;"
      default: escaped.unicodeScalars.append(character)
      }
    }
    return escaped
  }

  private static func moment(_ seconds: Int64) -> String {
    Date(timeIntervalSince1970: TimeInterval(seconds)).formatted(.iso8601)
  }
}
