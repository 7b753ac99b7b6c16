import MoongateSDK

/// The HTML part of a mail: the text's own words, with the code large enough to be read at a glance.
///
/// Nothing in it is fetched from anywhere (no images, no fonts, no links), so that opening it tells nobody anything; and
/// it is read in order by a screen reader, in the reader's own colours.
enum MailPage {
  private static let body = "margin:0;padding:24px;font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
  private static let code = "font-size:28px;line-height:1.6;letter-spacing:.15em;white-space:nowrap"

  /// - Parameter subject: of the mail, which is the heading too.
  static func html(_ message: Message, subject: String) -> String {
    let title = escaped(subject)
    var paragraphs: [String] = []
    for block in message.text.split(separator: /\r?\n[ \t]*\r?\n/) {
      paragraphs.append("<p>\(escaped(String(block)).replacing(/\r?\n/, with: "<br>\n"))</p>")
    }
    var text = paragraphs.joined(separator: "\n")
    if let code = message.code.map(escaped), !code.isEmpty, let range = text.firstRange(of: code) {
      text.replaceSubrange(range, with: "<strong style=\"\(Self.code)\">\(code)</strong>")
    }
    return """
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="color-scheme" content="light dark">
      <title>\(title)</title>
      </head>
      <body style="\(body)">
      <div role="main" style="max-width:30em;margin:0 auto">
      <h1 style="font-size:20px;line-height:1.3">\(title)</h1>
      \(text)
      </div>
      </body>
      </html>

      """
  }

  static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;").replacing("\"", with: "&quot;")
  }
}
