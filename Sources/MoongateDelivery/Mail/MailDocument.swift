import MoongateCore
import MoongateSDK

/// A mail in wire format (RFC 5322, RFC 2046) with a text and an HTML part.
struct MailDocument: Sendable, Equatable {
  /// The document with CR LF line ends.
  let bytes: [UInt8]

  /// - Throws: an error if the address is not valid in a mail.
  init(_ message: Message, from sender: MailSender, at now: Timestamp, random: any RandomSource) throws(TransportError)
  {
    guard MailSender.isAddress(message.to) else {
      throw TransportError("the address is not valid in a mail", isOfMessage: true)
    }
    let subject = message.subject ?? sender.name ?? "A message for you"
    let boundary = "=_\(Base64URL.encode(random.bytes(18)))"
    let from = sender.name.map { "\(MailText.displayName($0)) <\(sender.address)>" } ?? sender.address
    let head = [
      "Date: \(MailText.date(now))", "From: \(from)", "To: \(message.to)",
      "Message-ID: <\(Base64URL.encode(random.bytes(18)))@\(sender.domain)>", "Subject: \(MailText.header(subject))",
      // Prevents automatic replies (RFC 3834); Exchange needs its own header.
      "Auto-Submitted: auto-generated", "X-Auto-Response-Suppress: All", "MIME-Version: 1.0",
      "Content-Type: multipart/alternative; boundary=\"\(boundary)\"",
    ]
    var bytes = Self.lines(head + ["", ""])
    bytes += Self.part("text/plain", message.text, boundary)
    bytes += Self.part("text/html", MailPage.html(message, subject: subject), boundary)
    bytes += Self.lines(["--\(boundary)--"])
    self.bytes = bytes
  }

  private static func part(_ type: String, _ text: String, _ boundary: String) -> [UInt8] {
    lines(["--\(boundary)", "Content-Type: \(type); charset=utf-8", "Content-Transfer-Encoding: quoted-printable", ""])
      + MailText.quotedPrintable(text)
  }

  private static func lines(_ lines: [String]) -> [UInt8] { lines.flatMap { $0.utf8 + [0x0d, 0x0a] } }
}
