import MoongateSDK

/// The HTML part of a mail: the text in a card with the brand color, and the code in large type.
///
/// It loads nothing (no images, fonts or styles), so that opening it discloses nothing. The layout is a table with
/// inline styles, because many mail clients support nothing else. Clients that support `prefers-color-scheme` can show
/// it in dark mode. If the message has a link, it is one here too.
enum MailPage {
  private static let font = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif"
  private static let own = "#0d7377"

  /// - Parameter subject: the subject of the mail, which is also the heading.
  static func html(_ message: Message, subject: String) -> String {
    let style = message.style
    let title = escaped(subject)
    let align = style?.isRightToLeft == true ? "right" : "left"
    let colour = style?.colour.flatMap { $0.wholeMatch(of: /#[0-9A-Fa-f]{6}/) == nil ? nil : $0 } ?? own
    let brand =
      style.map {
        "<p class=\"quiet\" style=\"margin:0 0 16px;font-size:15px;font-weight:600;color:#555555\"><bdi>\(escaped($0.service))</bdi></p>\n"
      } ?? ""
    let footer =
      style.map {
        "<tr><td class=\"quiet\" style=\"padding:16px 32px;font-size:13px;line-height:1.5;color:#555555\" align=\"\(align)\">\(escaped($0.footer))</td></tr>\n"
      } ?? ""
    return """
      <!DOCTYPE html>
      <html lang="\(escaped(style?.language ?? "en"))" dir="\(style?.isRightToLeft == true ? "rtl" : "ltr")">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="color-scheme" content="light dark">
      <meta name="supported-color-schemes" content="light dark">
      <title>\(title)</title>
      <style>
      :root { color-scheme: light dark; }
      @media (prefers-color-scheme: dark) {
      .ground { background: #111112 !important; }
      .card { background: #1e1e1e !important; color: #e8e8e8 !important; border-right-color: #3a3a3a !important; border-bottom-color: #3a3a3a !important; border-left-color: #3a3a3a !important; }
      .code { background: #2a2a2a !important; color: #ffffff !important; }
      .quiet { color: #a8a8a8 !important; }
      }
      @media (max-width: 400px) { .inner { padding: 24px 20px !important; } }
      </style>
      </head>
      <body class="ground" style="margin:0;padding:0;background:#f4f5f6;\(font)">
      <div role="main">
      <table class="ground" role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="background:#f4f5f6">
      <tr><td align="center" style="padding:24px 12px">
      <table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="max-width:480px">
      <tr><td class="card inner" align="\(align)" style="padding:32px;background:#ffffff;color:#1e1e1e;border:1px solid #e2e4e6;border-top:4px solid \(colour);border-radius:12px;font-size:16px;line-height:1.55">
      \(brand)<h1 style="margin:0 0 16px;font-size:22px;line-height:1.3">\(title)</h1>
      \(paragraphs(message))
      </td></tr>
      \(footer)</table>
      </td></tr>
      </table>
      </div>
      </body>
      </html>

      """
  }

  private static func paragraphs(_ message: Message) -> String {
    var paragraphs: [String] = []
    for block in message.text.split(separator: /\r?\n[ \t]*\r?\n/) {
      let lines = escaped(String(block)).replacing(/\r?\n/, with: "<br>\n")
      paragraphs.append(
        "<p\(message.style == nil ? " dir=\"auto\"" : "") style=\"margin:0 0 16px;overflow-wrap:anywhere\">\(lines)</p>"
      )
    }
    var text = paragraphs.joined(separator: "\n")
    // The code stays within its sentence for screen readers, and runs from left to right in every language.
    if let code = message.code.map(escaped), !code.isEmpty, let range = text.firstRange(of: code) {
      text.replaceSubrange(range, with: "<strong class=\"code\" dir=\"ltr\" style=\"\(Self.code)\">\(code)</strong>")
    }
    if let link = message.link.map(escaped), !link.isEmpty, let range = text.firstRange(of: link) {
      text.replaceSubrange(range, with: "<a dir=\"ltr\" href=\"\(link)\">\(link)</a>")
    }
    return text
  }

  private static let code =
    "display:inline-block;margin:4px 0;padding:4px 14px;background:#f1f3f4;border-radius:8px;font-size:28px;line-height:1.4;letter-spacing:.15em;white-space:nowrap;unicode-bidi:isolate"

  static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;").replacing(
      "\"", with: "&quot;")
  }
}
