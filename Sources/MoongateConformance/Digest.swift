/// Fast digests, used to recognize a secret that is stored under one. (swift-crypto would become a dependency of all
/// providers' tests.)
enum Digest: CaseIterable {
  case md5
  case sha1
  case sha256

  /// The name for messages, for example `SHA-256`.
  var name: String {
    switch self {
    case .md5: "MD5"
    case .sha1: "SHA-1"
    case .sha256: "SHA-256"
    }
  }

  /// RFC 1321 and FIPS 180-4.
  func of(_ message: [UInt8]) -> [UInt8] {
    switch self {
    case .md5: Self.md5(message)
    case .sha1: Self.sha1(message)
    case .sha256: Self.sha256(message)
    }
  }

  /// RFC 2104.
  func code(of message: [UInt8], key: [UInt8]) -> [UInt8] {
    let short = key.count > 64 ? of(key) : key
    let padded = short + [UInt8](repeating: 0, count: 64 - short.count)
    return of(padded.map { $0 ^ 0x5c } + of(padded.map { $0 ^ 0x36 } + message))
  }

  // MARK: digests, as plain loops because the suite runs in debug builds

  /// The padded message: a one bit, zeros, and its length in bits.
  private static func padded(_ message: [UInt8], isBigEndian: Bool) -> [UInt8] {
    let zeros = (64 - (message.count + 9) % 64) % 64
    let length = withUnsafeBytes(of: UInt64(message.count * 8).bigEndian) { Array($0) }
    return message + [0x80] + [UInt8](repeating: 0, count: zeros) + (isBigEndian ? length : length.reversed())
  }

  /// The sixteen words of a block.
  private static func words(of text: [UInt8], from block: Int) -> [UInt32] {
    var words: [UInt32] = []
    for start in stride(from: block, to: block + 64, by: 4) {
      words.append(
        UInt32(text[start]) << 24 | UInt32(text[start + 1]) << 16 | UInt32(text[start + 2]) << 8
          | UInt32(text[start + 3]))
    }
    return words
  }

  private static func bytes(_ words: [UInt32]) -> [UInt8] {
    words.flatMap { word in withUnsafeBytes(of: word.bigEndian) { Array($0) } }
  }

  private static func rotated(_ word: UInt32, right count: UInt32) -> UInt32 { word >> count | word << (32 - count) }

  private static func sha256(_ message: [UInt8]) -> [UInt8] {
    let text = padded(message, isBigEndian: true)
    var state = roots
    for block in stride(from: 0, to: text.count, by: 64) {
      var words = words(of: text, from: block)
      for index in 16..<64 {
        let (near, far) = (words[index - 2], words[index - 15])
        let first: UInt32 = rotated(near, right: 17) ^ rotated(near, right: 19) ^ near >> 10
        let second: UInt32 = rotated(far, right: 7) ^ rotated(far, right: 18) ^ far >> 3
        words.append(first &+ words[index - 7] &+ second &+ words[index - 16])
      }
      var (a, b, c, d) = (state[0], state[1], state[2], state[3])
      var (e, f, g, h) = (state[4], state[5], state[6], state[7])
      for index in 0..<64 {
        let second: UInt32 = rotated(e, right: 6) ^ rotated(e, right: 11) ^ rotated(e, right: 25)
        let chosen: UInt32 = (e & f) ^ (~e & g)
        let added: UInt32 = h &+ second &+ chosen &+ constants[index] &+ words[index]
        let first: UInt32 = rotated(a, right: 2) ^ rotated(a, right: 13) ^ rotated(a, right: 22)
        let majority: UInt32 = (a & b) ^ (a & c) ^ (b & c)
        (h, g, f, e) = (g, f, e, d &+ added)
        (d, c, b, a) = (c, b, a, added &+ first &+ majority)
      }
      state = zip(state, [a, b, c, d, e, f, g, h]).map { $0 &+ $1 }
    }
    return bytes(state)
  }

  private static func sha1(_ message: [UInt8]) -> [UInt8] {
    let text = padded(message, isBigEndian: true)
    var state: [UInt32] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0]
    for block in stride(from: 0, to: text.count, by: 64) {
      var words = words(of: text, from: block)
      for index in 16..<80 {
        let word: UInt32 = words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16]
        words.append(rotated(word, right: 31))
      }
      var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
      for index in 0..<80 {
        let mixed: UInt32
        switch index / 20 {
        case 0: mixed = (b & c) | (~b & d)
        case 2: mixed = (b & c) | (b & d) | (c & d)
        default: mixed = b ^ c ^ d
        }
        let next: UInt32 = rotated(a, right: 27) &+ mixed &+ e &+ steps[index / 20] &+ words[index]
        (e, d, c, b, a) = (d, c, rotated(b, right: 2), a, next)
      }
      state = zip(state, [a, b, c, d, e]).map { $0 &+ $1 }
    }
    return bytes(state)
  }

  private static func md5(_ message: [UInt8]) -> [UInt8] {
    let text = padded(message, isBigEndian: false)
    var state: [UInt32] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476]
    for block in stride(from: 0, to: text.count, by: 64) {
      let words = words(of: text, from: block)
      var (a, b, c, d) = (state[0], state[1], state[2], state[3])
      for index in 0..<64 {
        let mixed: UInt32
        let place: Int
        switch index / 16 {
        case 0: (mixed, place) = ((b & c) | (~b & d), index)
        case 1: (mixed, place) = ((d & b) | (~d & c), (5 * index + 1) % 16)
        case 2: (mixed, place) = (b ^ c ^ d, (3 * index + 5) % 16)
        default: (mixed, place) = (c ^ (b | ~d), (7 * index) % 16)
        }
        let sum: UInt32 = mixed &+ a &+ sines[index] &+ words[place].byteSwapped
        (a, d, c, b) = (d, c, b, b &+ rotated(sum, right: 32 - shifts[index / 16][index % 4]))
      }
      state = zip(state, [a, b, c, d]).map { $0 &+ $1 }
    }
    return bytes(state.map(\.byteSwapped))
  }

  /// FIPS 180-4 section 4.2.1.
  private static let steps: [UInt32] = [0x5a82_7999, 0x6ed9_eba1, 0x8f1b_bcdc, 0xca62_c1d6]

  private static let shifts: [[UInt32]] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]]

  /// FIPS 180-4 section 5.3.3.
  private static let roots: [UInt32] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
  ]

  /// FIPS 180-4 section 4.2.2.
  private static let constants: [UInt32] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
  ]

  /// RFC 1321 section 3.4.
  private static let sines: [UInt32] = [
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501, 0x698098d8,
    0x8b44f7af,
    0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51,
    0xe9b6c7aa,
    0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905,
    0xfcefa3f8,
    0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60,
    0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
    0x432aff97,
    0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314,
    0x4e0811a1,
    0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
  ]
}
