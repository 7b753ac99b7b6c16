/// The tokens of programs. What changes them is in `Change`.
package protocol AccessTokenStore: Sendable {
  /// The token whose secret has one of these hashes, whatever its times say, with its owner; nil where there is none.
  func accessToken(hashed hashes: [[UInt8]]) async throws(StoreFault) -> FoundAccessToken?
  /// The same by its id.
  func accessToken(_ id: String) async throws(StoreFault) -> FoundAccessToken?
  /// The tokens of an account, or the service tokens, by name; of one name the one that holds it first, then those that
  /// it took the place of.
  /// - Parameter account: nil: the service tokens.
  func accessTokens(of account: String?) async throws(StoreFault) -> [AccessToken]
  /// How many tokens are hashed under each master key, by its name.
  func accessTokensByKey() async throws(StoreFault) -> [String: Int]
  /// Hashes a token anew, where it still has the old hash.
  func rehashAccessToken(_ id: String, from old: AccessTokenHash, to new: AccessTokenHash, at now: Timestamp)
    async throws(StoreFault)
  /// Writes uses down, and the event of each that came from a network from which the token was never used. Moves the
  /// last use forward, never back.
  func recordAccessTokenUses(_ uses: [AccessTokenUse]) async throws(StoreFault)
  /// Tokens that are over, and of which nobody was told yet: expired, or older than a change of their owner's account.
  /// - Parameter limit: at most so many, 1 or more.
  func endedAccessTokens(at now: Timestamp, limit: Int) async throws(StoreFault) -> [AccessToken]
}
