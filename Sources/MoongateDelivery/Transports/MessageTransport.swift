import MoongateSDK

/// Sends a single message by SMTP, to a webhook, or through Twilio.
protocol MessageTransport: Sendable {
  /// The receiving site for logs, for example `smtps://mail.example.com:465`.
  var site: String { get }
  /// The maximum number of concurrent messages.
  var most: Int { get }

  /// Returns when the site has accepted the message. A failure is not retried, because the user can ask again.
  func send(_ message: Message) async throws(TransportError)
}

/// Why a message was not accepted.
struct TransportError: Error, Sendable, Equatable {
  /// The reason for the operator's log, without the message, its code or its address.
  let reason: String
  /// Whether the message itself is the cause (for example an address that does not exist), and not the site.
  ///
  /// Attack: an attacker uses nonexistent addresses to open the circuit for all users.
  let isOfMessage: Bool

  init(_ reason: String, isOfMessage: Bool = false) {
    self.reason = reason
    self.isOfMessage = isOfMessage
  }
}
