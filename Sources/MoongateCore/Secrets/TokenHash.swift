import Crypto

/// The SHA-256 of a bearer secret: all that the store and the caches know of a session's token or a flow's id.
package struct TokenHash: Hashable, Sendable, Codable {
  /// 32 bytes.
  package let bytes: [UInt8]

  package init(bytes: [UInt8]) { self.bytes = bytes }

  package init(from decoder: any Decoder) throws { bytes = try Base64Coded(from: decoder).wrappedValue }

  package func encode(to encoder: any Encoder) throws { try Base64Coded(wrappedValue: bytes).encode(to: encoder) }

  /// Hashes the text of a token as it travels.
  package init(of token: some Sequence<UInt8>) {
    var hash = SHA256()
    var buffer = Array(token)
    buffer.withUnsafeMutableBytes { hash.update(bufferPointer: UnsafeRawBufferPointer($0)) }
    self.bytes = Array(hash.finalize())
  }
}
