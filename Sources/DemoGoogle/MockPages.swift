/// The pages of the provider, without scripts. Every page says that it is a mock.
enum MockPages {
  /// The account selection page. More than five parameters: the values of the template.
  static func choose(
    key: String, path: String, client: String, accounts: [MockAccount], seen: Set<String>, signsWith: String,
    hasRotated: Bool
  ) -> String {
    page(
      "Choose an account", path: path,
      """
      <h1>Choose an account</h1>
      <p>to continue to <strong>\(escape(client))</strong></p>
      \(hasRotated ? "<p role=\"status\" class=\"note\">New signing keys: <code>\(escape(signsWith))</code> from now on.</p>" : "")
      <form method="post" action="\(path)/authorize">
      <input type="hidden" name="request" value="\(escape(key))">
      <ul>
      \(accounts.map { "<li><button name=\"account\" value=\"\($0.subject)\">\(label($0, isKnown: seen.contains($0.subject)))</button></li>" }.joined(separator: "\n"))
      </ul>
      <p><label class="check"><input type="checkbox" name="slow" value="1"> Answer slowly: the token takes eight seconds</label></p>
      <p class="row"><button name="action" value="cancel" class="plain">Cancel</button>
      <button name="action" value="error" class="plain">Fail with an error</button></p>
      </form>
      <form method="post" action="\(path)/authorize">
      <input type="hidden" name="request" value="\(escape(key))">
      <input type="hidden" name="account" value="other">
      <fieldset><legend>Use another account</legend>
      <p><label>Name <input name="name" autocomplete="off" maxlength="100" value="Dora Fox"></label></p>
      <p><label>Email <input name="email" type="email" autocomplete="off" maxlength="254" required value="dora@example.com"></label></p>
      <p><label class="check"><input type="checkbox" name="verified" value="1" checked> Google has verified this address</label></p>
      <p><label>Organisation's domain (<code>hd</code>), empty for a personal account <input name="hd" autocomplete="off" maxlength="253"></label></p>
      <p><button>Continue as this person</button></p>
      </fieldset>
      </form>
      \(keys(path: path, key: key, signsWith: signsWith))
      """)
  }

  /// The index page, which needs no client.
  static func index(path: String, accounts: [MockAccount], signsWith: String, hasRotated: Bool) -> String {
    page(
      "Mock Google", path: path,
      """
      <h1>Mock Google</h1>
      <p>An OpenID provider for demos and tests. It signs in any account without a password.
      Its <a href="\(path)/.well-known/openid-configuration">discovery document</a> lists all endpoints.</p>
      \(hasRotated ? "<p role=\"status\" class=\"note\">New signing keys: <code>\(escape(signsWith))</code> from now on.</p>" : "")
      <ul>\(accounts.map { "<li>\(label($0, isKnown: false))</li>" }.joined(separator: "\n"))</ul>
      \(keys(path: path, key: nil, signsWith: signsWith))
      """)
  }

  /// The page of an error that cannot be returned to a client.
  static func problem(_ sentence: String, path: String) -> String {
    page("That did not work", path: path, "<h1>That did not work</h1>\n<p role=\"alert\">\(escape(sentence))</p>")
  }

  static let stylesheet = """
    :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
    body { margin: 0; display: grid; justify-items: center; }
    main { width: min(26rem, calc(100vw - 2rem)); padding: 1.5rem 0; }
    .mock { background: #7a4f00; color: #fff; text-align: center; width: 100%; padding: .4rem 0; margin: 0; }
    h1 { font-size: 1.5rem; font-weight: 500; margin: .5rem 0; }
    ul { list-style: none; padding: 0; margin: 1rem 0; display: grid; gap: .5rem; }
    button { font: inherit; min-height: 44px; padding: .5rem 1rem; border: 1px solid #747775; border-radius: 8px; background: Canvas; color: CanvasText;
      cursor: pointer; text-align: start; }
    li button { width: 100%; }
    button:hover { background: color-mix(in srgb, CanvasText 8%, Canvas); }
    :focus-visible { outline: 3px solid #0b57d0; outline-offset: 2px; }
    @media (prefers-color-scheme: dark) { :focus-visible { outline-color: #a8c7fa; } }
    small { display: block; }
    label { display: block; }
    label.check { min-height: 44px; display: flex; gap: .5rem; align-items: center; }
    label.check input { width: 1.25rem; height: 1.25rem; flex: none; }
    label:not(.check) input { font: inherit; width: 100%; box-sizing: border-box; min-height: 44px; padding: .25rem .5rem; }
    fieldset { border: 1px solid #747775; border-radius: 8px; margin: 1.5rem 0; }
    .row { display: flex; gap: .5rem; flex-wrap: wrap; }
    .note { border-inline-start: 4px solid #0b57d0; padding-inline-start: .75rem; }

    """

  private static func keys(path: String, key: String?, signsWith: String) -> String {
    """
    <form method="post" action="\(path)/keys">
    \(key.map { "<input type=\"hidden\" name=\"request\" value=\"\(escape($0))\">" } ?? "")
    <p>Signs with <code>\(escape(signsWith))</code>. <button class="plain">Rotate the signing keys</button></p>
    </form>
    """
  }

  private static func label(_ account: MockAccount, isKnown: Bool) -> String {
    let address =
      account.email.map { "\(escape($0)), \(account.isEmailVerified ? "verified" : "not verified")" }
      ?? "no email address"
    return "\(escape(account.name))<small>\(address)\(isKnown ? " · signed in here before" : "")</small>"
  }

  private static func page(_ title: String, path: String, _ body: String) -> String {
    """
    <!doctype html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>\(title) · Mock Google</title>
    <link rel="stylesheet" href="\(path)/style.css">
    </head>
    <body>
    <p class="mock">Mock Google: for demos and tests</p>
    <main>
    \(body)
    </main>
    </body>
    </html>

    """
  }

  private static func escape(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;").replacing(
      "\"", with: "&quot;")
  }
}
