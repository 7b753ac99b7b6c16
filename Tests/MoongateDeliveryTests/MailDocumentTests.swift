import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateDelivery

@Suite("A mail message") struct MailDocumentTests {
  static let sender = MailSender("Moongate <no-reply@example.com>")

  private func text(
    to: String = "a@example.com", subject: String? = "Your code", text: String = "Your code is 012345.",
    code: String? = "012345",
    from: MailSender? = sender
  ) throws -> String {
    let document = try MailDocument(
      Message(channel: .mail, to: to, subject: subject, text: text, code: code), from: try #require(from),
      at: ManualClock.start,
      random: SeededRandom(seed: 1))
    return String(decoding: document.bytes, as: UTF8.self)
  }

  /// The names of the headers, in order.
  private func names(_ text: String) -> [String] {
    let head = text.prefix(upTo: text.firstRange(of: "\r\n\r\n")?.lowerBound ?? text.endIndex)
    return head.split(separator: "\r\n").filter { !$0.hasPrefix(" ") }.map { String($0.prefix { $0 != ":" }) }
  }

  private let usual = [
    "Date", "From", "To", "Message-ID", "Subject", "Auto-Submitted", "X-Auto-Response-Suppress", "MIME-Version",
    "Content-Type",
  ]

  @Test("has a date, a sender and the header of automatic mail") func head() throws {
    let text = try text()
    #expect(names(text) == usual)
    #expect(
      text.hasPrefix(
        "Date: Fri, 20 Nov 2026 12:00:00 +0000\r\nFrom: \"Moongate\" <no-reply@example.com>\r\nTo: a@example.com\r\n"))
    #expect(text.firstMatch(of: /\r\nMessage-ID: <[A-Za-z0-9_-]{24}@example\.com>\r\n/) != nil)
    #expect(text.contains("\r\nSubject: Your code\r\nAuto-Submitted: auto-generated\r\n"))
  }

  @Test("is ASCII in lines of at most 76 characters that end in CR LF") func lines() throws {
    let text = try text(
      subject: "Größe 🌙 " + String(repeating: "ü", count: 100),
      text: ".\nline = end \r\n" + String(repeating: "äx", count: 200) + "\t")
    let bytes = Array(text.utf8)
    #expect(bytes.allSatisfy { $0 < 0x80 })
    for (index, byte) in bytes.enumerated() where byte == 0x0a { #expect(bytes[index - 1] == 0x0d) }
    for line in text.split(separator: "\r\n", omittingEmptySubsequences: false) {
      #expect(line.utf8.count <= 78, "\(line)")
      #expect(!line.hasPrefix("."))
    }
    #expect(text.contains("\r\n=2E\r\nline =3D end=20\r\n"))
  }

  @Test(
    "contains no header injected through its subject, recipient or sender",
    arguments: [
      "x\r\nBcc: b@example.com", "x\nBcc: b@example.com", "x\rBcc: b", "x\u{2028}Bcc: b", "x\u{0}\r\n\r\nbody",
    ])
  func injection(_ attack: String) throws {
    #expect(names(try text(subject: attack)) == usual)
    #expect(throws: TransportError("the address is not valid in a mail", isOfMessage: true)) {
      try text(to: "a@example.com" + attack)
    }
    #expect(throws: TransportError.self) { try text(to: attack + "@example.com") }
    #expect(MailSender("\(attack) <a@example.com>") == nil || !attack.unicodeScalars.contains { $0.value < 32 })
    #expect(MailSender("a@example.com\(attack)") == nil)
  }

  @Test("accepts addresses that a message can contain") func addresses() {
    for good in [
      "a@b", "a.b+c@example.com", "\"a b\"@example.com", "\"a\\\"b\"@example.com", "o'neill@xn--bcher-kva.example",
      "!#$%&'*+-/=?^_`{|}~@a.b",
    ] {
      #expect(MailSender.isAddress(good), "\(good)")
    }
    let long = String(repeating: "a", count: 65)
    for bad in [
      "", "@", "a@", "@b", "a", "a b@c", "a@b c", "a@b>", "<a@b>", "a@b,c@d", "a@-b", "a@b.", "ä@b", "a@ä", "\"a@b",
      "\"a\"b\"@c", "\"\\\"@b",
      "a(b)@c",
      "\(long)@b", "a@" + String(repeating: "b", count: 254), "a@[127.0.0.1]", "a;b@c",
    ] { #expect(!MailSender.isAddress(bad), "\(bad)") }
  }

  @Test("has an HTML part with a large code and escaped text") func page() throws {
    let html = MailPage.html(
      Message(
        channel: .mail, to: "a@b", text: "Your <Moongate> code is 012345.\n\nIt is good for 15 minutes.\nBye",
        code: "012345"),
      subject: "\"A&B\" <script>")
    #expect(html.contains("<title>&quot;A&amp;B&quot; &lt;script&gt;</title>"))
    #expect(html.contains("<html lang=\"en\" dir=\"ltr\">"))
    #expect(html.contains(">Your &lt;Moongate&gt; code is <strong class=\"code\" dir=\"ltr\" style="))
    #expect(html.contains(/>012345<\/strong>\.<\/p>\n<p [^>]*>It is good for 15 minutes\.<br>\nBye<\/p>/))
    #expect(!html.contains("http"))
    #expect(try text().contains("Content-Type: text/html; charset=utf-8\r\n"))
  }

  /// Attack: a link ends its attribute and adds another.
  @Test("has its link as a link") func link() {
    let message = Message(channel: .mail, to: "a@b", text: "Open:\n\nhttps://a.example/x?a=1&b=\"><b>\n\nBye")
    let html = MailPage.html(message.linking(to: "https://a.example/x?a=1&b=\"><b>"), subject: "s")
    let escaped = "https://a.example/x?a=1&amp;b=&quot;&gt;&lt;b&gt;"
    #expect(html.contains("<a dir=\"ltr\" href=\"\(escaped)\">\(escaped)</a>"))
    #expect(!MailPage.html(message, subject: "s").contains("href"))
    let line = ServerLine("554 no https://a.example/y", about: message.linking(to: "https://a.example/y"))
    #expect(line.text == "554 no (link)")
  }

  @Test("has the language and color of its style") func style() {
    let message = Message(channel: .mail, to: "a@b", text: "123456 هو الرمز", code: "123456")
    func html(_ colour: String?) -> String {
      MailPage.html(
        message.styled(
          MessageStyle(language: "ar", isRightToLeft: true, service: "A<b>", colour: colour, footer: "\"f\" & g")),
        subject: "s")
    }
    let page = html("#FFD400")
    #expect(
      page.contains("<html lang=\"ar\" dir=\"rtl\">") && page.contains("align=\"right\"")
        && page.contains("border-top:4px solid #FFD400"))
    #expect(
      page.contains("<bdi>A&lt;b&gt;</bdi>") && page.contains("&quot;f&quot; &amp; g")
        && page.contains("prefers-color-scheme: dark"))
    #expect(html("red;background:url(//x)").contains("border-top:4px solid #0d7377"), "nothing else gets into a style")
    #expect(!page.contains("http") && !page.contains("url("))
  }

  @Test(
    "has a correct date",
    arguments: [(0, "Thu, 01 Jan 1970 00:00:00 +0000"), (951_827_696, "Tue, 29 Feb 2000 12:34:56 +0000")])
  func date(seconds: Int64, text: String) { #expect(MailText.date(Timestamp(milliseconds: seconds * 1000)) == text) }

  @Test("names users in any script") func names() {
    #expect(MailText.displayName("A \"B\" \\C") == #""A \"B\" \\C""#)
    #expect(MailText.displayName("Mönd") == "=?utf-8?q?M=C3=B6nd?=")
    #expect(MailText.header("=?utf-8?q?x?=") == "=?utf-8?q?=3D=3Futf=2D8=3Fq=3Fx=3F=3D?=")
  }
}
