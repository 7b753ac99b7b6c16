import MoongateSDK

/// Stores what apps were given: grants, connections of accounts, requests of devices, and notices of sign-outs.
package protocol AppStore: Sendable {
  /// The grant with its account and its live session, all as of one moment, even if it has ended or expired; nil if
  /// none exists.
  func appGrant(_ id: String, at now: Timestamp) async throws(StoreFault) -> LiveAppGrant?
  /// The grant whose current or previous refresh token has the hash.
  func appGrant(refresh hash: TokenHash, at now: Timestamp) async throws(StoreFault) -> LiveAppGrant?
  /// The apps of an account, the one that was used last first.
  func appConnections(of account: String) async throws(StoreFault) -> [AppConnection]
  /// The request with this device code, expired or not, until it is pruned.
  func deviceRequest(device: TokenHash) async throws(StoreFault) -> DeviceRequest?
  /// The pending request with these letters; nil if it has expired or was decided.
  func deviceRequest(user: TokenHash, at now: Timestamp) async throws(StoreFault) -> DeviceRequest?
  /// Claims due notices, so that no other gateway sends them at the same time.
  /// - Parameters:
  ///   - limit: the maximum number, 1 or more.
  ///   - end: when they are due again, unless they are settled (`Change.settleAppNotice`).
  func claimAppNotices(limit: Int, until end: Timestamp, at now: Timestamp) async throws(StoreFault) -> [AppNotice]
}
