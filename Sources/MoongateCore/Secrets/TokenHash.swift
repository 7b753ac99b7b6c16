import Crypto
import MoongateSDK

/// The SHA-256 of a bearer secret. The store and the caches know session tokens and flow IDs only by this hash.
package struct TokenHash: Hashable, Sendable, Codable {
  /// 32 bytes.
  package let bytes: [UInt8]

  package init(bytes: [UInt8]) { self.bytes = bytes }

  package init(from decoder: any Decoder) throws { bytes = try Base64Coded(from: decoder).wrappedValue }

  package func encode(to encoder: any Encoder) throws { try Base64Coded(wrappedValue: bytes).encode(to: encoder) }

  /// Hashes a token in its text form.
  package init(of token: some Sequence<UInt8>) {
    var hash = SHA256()
    var buffer = Array(token)
    buffer.withUnsafeMutableBytes { hash.update(bufferPointer: UnsafeRawBufferPointer($0)) }
    self.bytes = Array(hash.finalize())
  }

  /// The first 12 bytes as text, by which the audit trail finds the events of a token. A token is 256 random bits, so
  /// nothing of it can be computed from its hash.
  package var trace: String { Base64URL.encode(bytes.prefix(12)) }
}
