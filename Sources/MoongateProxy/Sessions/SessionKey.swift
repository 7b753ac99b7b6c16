import Crypto
import MoongateCore

/// The SHA-256 of a token as four words, the key of the cache.
struct SessionKey: Hashable {
  private let words: (UInt64, UInt64, UInt64, UInt64)

  /// Hashes the token in the range.
  init(hashing bytes: Span<UInt8>, _ range: Range<Int>) {
    var hash = SHA256()
    bytes.extracting(range).withUnsafeBufferPointer { hash.update(bufferPointer: UnsafeRawBufferPointer($0)) }
    words = hash.finalize().withUnsafeBytes { $0.loadUnaligned(as: (UInt64, UInt64, UInt64, UInt64).self) }
  }

  /// Hashes the token.
  init(hashing token: [UInt8]) { self.init(hashing: token.span, token.indices) }

  init(_ hash: TokenHash) {
    words = hash.bytes.withUnsafeBytes { bytes in
      bytes.count == 32 ? bytes.loadUnaligned(as: (UInt64, UInt64, UInt64, UInt64).self) : (0, 0, 0, 0)
    }
  }

  var tokenHash: TokenHash { TokenHash(bytes: withUnsafeBytes(of: words) { Array($0) }) }

  static func == (left: Self, right: Self) -> Bool { left.words == right.words }

  func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
  }
}
