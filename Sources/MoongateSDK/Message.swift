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

  public init(channel: MessageChannel, to: String, subject: String? = nil, text: String, code: String? = nil) {
    self.channel = channel
    self.to = to
    self.subject = subject
    self.text = text
    self.code = code
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

  public init(reason: String) { self.reason = reason }
}
