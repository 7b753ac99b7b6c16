/// All that the store knows of a token's secret: an HMAC of it, and the master key that the HMAC's key follows from.
package struct AccessTokenHash: Sendable, Equatable {
  /// The name of the master key (`KeyRing.names`).
  package let key: String
  /// 32 bytes.
  package let bytes: [UInt8]

  package init(key: String, bytes: [UInt8]) {
    self.key = key
    self.bytes = bytes
  }
}
