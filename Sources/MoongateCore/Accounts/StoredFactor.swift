import MoongateSDK

/// A PIN, a password or another factor, without what it is.
package struct StoredFactor: Sendable, Equatable {
  package let provider: ProviderName
  /// When it was set up; nil: before the store kept this.
  package let addedAt: Timestamp?
  /// When its record was last written: a change, or the use of a code that is good once. nil: before the store kept
  /// this.
  package let changedAt: Timestamp?

  package init(provider: ProviderName, addedAt: Timestamp?, changedAt: Timestamp?) {
    self.provider = provider
    self.addedAt = addedAt
    self.changedAt = changedAt
  }
}
