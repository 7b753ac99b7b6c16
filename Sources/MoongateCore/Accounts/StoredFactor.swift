import MoongateSDK

/// A PIN, a password or another factor, without its secret.
package struct StoredFactor: Sendable, Equatable {
  package let provider: ProviderName
  /// When it was set up.
  package let addedAt: Timestamp
  /// When its record was last written, by a change or the use of a one-time code.
  package let changedAt: Timestamp

  package init(provider: ProviderName, addedAt: Timestamp, changedAt: Timestamp) {
    self.provider = provider
    self.addedAt = addedAt
    self.changedAt = changedAt
  }
}
