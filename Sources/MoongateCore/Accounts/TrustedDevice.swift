import MoongateSDK

/// A device that is trusted for an account, because a sign-in was completed on it. The account lists the IDs that are
/// still valid; the device's own token proves one of them (`DeviceToken`).
package struct TrustedDevice: Sendable, Equatable, Codable {
  /// The maximum number of an account's trusted devices. The one that was unseen for the longest time is dropped.
  package static let mostPerAccount = 20

  /// `de_` followed by 96 random bits in base64url. Not a secret.
  package let id: String
  package let account: String
  package let createdAt: Timestamp
  /// The last sign-in on it.
  package var lastSeenAt: Timestamp
  /// The `User-Agent` of its last sign-in, for its owner to recognise. Truncated to 256 bytes.
  package var userAgent: String?

  package init(id: String, account: String, createdAt: Timestamp, lastSeenAt: Timestamp, userAgent: String?) {
    self.id = id
    self.account = account
    self.createdAt = createdAt
    self.lastSeenAt = lastSeenAt
    self.userAgent = userAgent
  }
}
