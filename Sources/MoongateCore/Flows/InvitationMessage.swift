import MoongateSDK

/// The message with an invitation: the service, the link and, in an email, the recipient and the expiry.
package struct InvitationMessage: Sendable {
  package let service: String
  /// The address or number that must be verified.
  package let recipient: String
  /// Contains the code.
  package let link: String
  package let expiresAt: Timestamp

  package init(service: String, recipient: String, link: String, expiresAt: Timestamp) {
    self.service = service
    self.recipient = recipient
    self.link = link
    self.expiresAt = expiresAt
  }

  /// The subject of an email.
  package func subject(in language: any MessageLanguage) -> String {
    "\(service): \(language.translated("Your invitation"))"
  }

  /// The whole text. An email has paragraphs. An SMS has one line without the details, because each further part costs
  /// as much as the first.
  ///
  /// Attack: an operator finds out by a message whether an address has an account, or its owner reads it from the
  /// message of somebody else. The text is the same for everybody.
  package func text(by channel: MessageChannel, in language: any MessageLanguage) -> String {
    let event = language.translated("You are invited to create an account")
    let first = language.text("{service}: {event}.", ["service": service, "event": event])
    guard channel == .mail else { return [first, link].joined(separator: " ") }
    let who = language.text(
      "Only {recipient} can use this link, once, until {time}:",
      ["recipient": recipient, "time": expiresAt.minuteOfMessage])
    let last = language.translated("If you do not expect this invitation, ignore this message.")
    return [first, who, link, last].joined(separator: "\n\n")
  }

  /// The message to the user.
  func message(to identifier: Identifier, by channel: MessageChannel, in language: any MessageLanguage) -> Message {
    Message(
      channel: channel, to: identifier.value, subject: channel == .mail ? subject(in: language) : nil,
      text: text(by: channel, in: language)
    ).linking(to: link)
  }
}

extension Timestamp {
  /// `2026-11-23 20:15 UTC`, a format that is understood in all languages.
  var minuteOfMessage: String { String(text.prefix(16)).replacing("T", with: " ") + " UTC" }
}
