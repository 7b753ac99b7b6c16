/// The stored form of a token's secret: an HMAC, and the name of the master key from which the HMAC key is derived.
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
