/// How a message reaches a person.
public enum MessageChannel: String, Sendable, Codable {
  case sms
  case mail
}

/// One message to one person.
public struct Message: Sendable {
  public let channel: MessageChannel
  /// E.164 or an email address.
  public let to: String
  /// For mail.
  public let subject: String?
  /// Complete: the code is in it, and so is the domain-bound last line of an SMS.
  public let text: String
  /// The code in `text`, so that the demo's outbox can show it. Never logged.
  public let code: String?
  /// What a mail looks like; nil where nobody has said so.
  package private(set) var style: MessageStyle?

  public init(channel: MessageChannel, to: String, subject: String? = nil, text: String, code: String? = nil) {
    self.channel = channel
    self.to = to
    self.subject = subject
    self.text = text
    self.code = code
  }

  package func styled(_ style: MessageStyle) -> Self {
    var message = self
    message.style = style
    return message
  }
}

/// What a mail looks like, and which language it is in.
package struct MessageStyle: Sendable, Equatable {
  /// BCP 47.
  package let language: String
  package let isRightToLeft: Bool
  /// What the operator's service calls itself.
  package let service: String
  /// `#rrggbb`; nil: the gateway's own.
  package let colour: String?
  /// The last line of a mail.
  package let footer: String

  package init(language: String, isRightToLeft: Bool, service: String, colour: String?, footer: String) {
    self.language = language
    self.isRightToLeft = isRightToLeft
    self.service = service
    self.colour = colour
    self.footer = footer
  }
}

/// Takes messages to where the operator's gateway.lua says. Given to a provider by the core.
public protocol Messenger: Sendable {
  /// Returns when the message was taken over for delivery.
  /// - Throws: `DeliveryFault` where it was not; the person's try is then not charged.
  func send(_ message: Message) async throws(DeliveryFault)
}

/// A message that could not be handed over.
public struct DeliveryFault: Error, Sendable, Equatable {
  /// For the operator's log: what and why, without the message or its code.
  public let reason: String
  /// Why this identifier cannot be reached, where the provider declares that among its `deliveryReasons`; nil for any
  /// other fault, such as a site that does not answer.
  public let declared: RefusalReason?

  /// A fault that says nothing about the identifier.
  public init(reason: String) {
    self.reason = reason
    declared = nil
  }

  /// The identifier cannot be reached, for a declared reason:
  /// `throw DeliveryFault("not_on_whatsapp", "error 131026 of the hub")`.
  /// - Parameter reason: for the operator's log.
  public init(_ declared: RefusalReason, _ reason: String) {
    self.reason = reason
    self.declared = declared
  }
}

/// Why a code provider could not deliver to an identifier, declared beforehand: the person may be told the sentence,
/// and a flow goes on with the next provider of its `fallback`.
public struct DeliveryReason: Hashable, Sendable, Codable {
  public let reason: RefusalReason
  /// One English sentence for the person: what is the matter and what to do. Plain text.
  public let sentence: String
  /// Whether another attempt to the same identifier will fail as well.
  public let isPermanent: Bool

  public init(_ reason: RefusalReason, _ sentence: String, isPermanent: Bool = false) {
    self.reason = reason
    self.sentence = sentence
    self.isPermanent = isPermanent
  }
}
