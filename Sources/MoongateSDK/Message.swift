/// The channel of a message.
public enum MessageChannel: String, Sendable, Codable {
  case sms
  case mail
}

/// A message to one recipient.
public struct Message: Sendable {
  public let channel: MessageChannel
  /// An E.164 number or an email address.
  public let to: String
  /// For emails.
  public let subject: String?
  /// The complete text, including the code and, for an SMS, the domain-bound last line.
  public let text: String
  /// The code in `text`, so that the demo's outbox can show it. Never logged.
  public let code: String?
  /// The style of an email; nil for the default.
  package private(set) var style: MessageStyle?
  /// A link in `text`, which an email makes clickable. Never logged.
  package private(set) var link: String?

  public init(channel: MessageChannel, to: String, subject: String? = nil, text: String, code: String? = nil) {
    self.channel = channel
    self.to = to
    self.subject = subject
    self.text = text
    self.code = code
  }

  /// The message with the link of its text.
  package func linking(to link: String) -> Self {
    var message = self
    message.link = link
    return message
  }

  package func styled(_ style: MessageStyle) -> Self {
    var message = self
    message.style = style
    return message
  }
}

/// The style and language of an email.
package struct MessageStyle: Sendable, Equatable {
  /// The BCP 47 tag.
  package let language: String
  package let isRightToLeft: Bool
  /// The name of the operator's service.
  package let service: String
  /// `#rrggbb`; nil for the default.
  package let colour: String?
  /// The last line of an email.
  package let footer: String

  package init(language: String, isRightToLeft: Bool, service: String, colour: String?, footer: String) {
    self.language = language
    self.isRightToLeft = isRightToLeft
    self.service = service
    self.colour = colour
    self.footer = footer
  }
}

/// Sends messages by the channel that the operator configures in gateway.lua. The core passes one to the provider.
public protocol Messenger: Sendable {
  /// Sends a message. Returns when it was accepted for delivery.
  /// - Throws: `DeliveryFault` if it was not accepted. The user is then not charged.
  func send(_ message: Message) async throws(DeliveryFault)
}

/// A failed delivery.
public struct DeliveryFault: Error, Sendable, Equatable {
  /// For the operator's log: what failed and why, without the message or its code.
  public let reason: String
  /// Why this identifier cannot be reached, if the provider declares that among its `deliveryReasons`; nil for any
  /// other fault, such as a site that does not respond.
  public let declared: RefusalReason?

  /// A fault that is not about the identifier.
  public init(reason: String) {
    self.reason = reason
    declared = nil
  }

  /// A declared reason why the identifier cannot be reached: `throw DeliveryFault("not_on_whatsapp", "error 131026 of
  /// the hub")`.
  /// - Parameter reason: for the operator's log.
  public init(_ declared: RefusalReason, _ reason: String) {
    self.reason = reason
    self.declared = declared
  }
}

/// A declared reason why a code provider could not deliver to an identifier. The user may see the sentence, and a flow
/// continues with the next provider of its `fallback`.
public struct DeliveryReason: Hashable, Sendable, Codable {
  public let reason: RefusalReason
  /// One English sentence for the user: what is wrong and what to do. Plain text.
  public let sentence: String
  /// Whether another attempt to the same identifier will fail too.
  public let isPermanent: Bool

  public init(_ reason: RefusalReason, _ sentence: String, isPermanent: Bool = false) {
    self.reason = reason
    self.sentence = sentence
    self.isPermanent = isPermanent
  }
}
