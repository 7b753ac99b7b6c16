import MoongateSDK

/// Brings one message to where it is to go: by SMTP, to a webhook, to Twilio.
protocol MessageTransport: Sendable {
  /// Who takes the messages, for logs: `smtps://mail.example.com:465`.
  var site: String { get }
  /// How many it brings at once.
  var most: Int { get }

  /// Returns when the site has taken the message. No try is repeated: the person asks again.
  func carry(_ message: Message) async throws(CarryFault)
}

/// A message that was not taken.
struct CarryFault: Error, Sendable, Equatable {
  /// For the operator's log, without the message, its code or its address.
  let reason: String
  /// Whether it lies in this message (an address that does not exist) and says nothing about the site.
  ///
  /// Attack: ten addresses that do not exist, which would otherwise open the circuit for everyone.
  let isOfMessage: Bool

  init(_ reason: String, isOfMessage: Bool = false) {
    self.reason = reason
    self.isOfMessage = isOfMessage
  }
}
