/// Stores access tokens. Changes to them are in `Change`.
package protocol AccessTokenStore: Sendable {
  /// The token whose secret has one of these hashes, expired or not, with its owner; nil if none exists.
  func accessToken(hashed hashes: [[UInt8]]) async throws(StoreFault) -> FoundAccessToken?
  /// The token with this ID.
  func accessToken(_ id: String) async throws(StoreFault) -> FoundAccessToken?
  /// The tokens of an account, or the service tokens, sorted by name. For each name, the current token comes before
  /// superseded ones.
  /// - Parameter account: nil for the service tokens.
  func accessTokens(of account: String?) async throws(StoreFault) -> [AccessToken]
  /// The number of tokens hashed under each master key, by key name.
  func accessTokensByKey() async throws(StoreFault) -> [String: Int]
  /// Replaces a token's hash, if it is still the old one.
  func rehashAccessToken(_ id: String, from old: AccessTokenHash, to new: AccessTokenHash, at now: Timestamp)
    async throws(StoreFault)
  /// Records uses, with the event of each use from a network that is new for its token. The time of the last use only
  /// moves forward.
  func recordAccessTokenUses(_ uses: [AccessTokenUse]) async throws(StoreFault)
  /// Tokens that have ended without a recorded event: expired, or older than a change of their owner's account.
  /// - Parameter limit: the maximum number, 1 or more.
  func endedAccessTokens(at now: Timestamp, limit: Int) async throws(StoreFault) -> [AccessToken]
}
