/// Finds any of many strings in a line, at a cost independent of their number. Stores only hashes of them.
struct TextMarks {
  /// The number of leading bytes that select candidates, and the minimum length of a string.
  static let head = 4
  /// The maximum number of compared bytes, because a line may be truncated.
  private static let compared = 256

  /// The stored form of a string.
  struct Mark: Hashable, Sendable {
    let head: UInt32
    let hash: UInt64
    /// The length of the whole string, in bytes.
    let length: Int32

    /// - Parameter text: at least four bytes.
    init(_ text: [UInt8]) {
      head = TextMarks.head(of: text, at: 0)
      hash = text.prefix(compared).reduce(TextMarks.basis) { TextMarks.hash($0, $1) }
      length = Int32(clamping: text.count)
    }
  }

  private var heads: [UInt32: Int] = [:]
  private var texts: [UInt64: (count: Int, length: Int)] = [:]

  mutating func add(_ mark: Mark) {
    heads[mark.head, default: 0] += 1
    let known = texts[mark.hash] ?? (0, 0)
    texts[mark.hash] = (known.count + 1, max(known.length, Int(mark.length)))
  }

  /// Removes a string that was added.
  mutating func remove(_ mark: Mark) {
    if let count = heads[mark.head] { heads[mark.head] = count > 1 ? count - 1 : nil }
    if let known = texts[mark.hash] { texts[mark.hash] = known.count > 1 ? (known.count - 1, known.length) : nil }
  }

  /// The ranges of the strings in the bytes; overlapping ranges are merged.
  func ranges(in bytes: [UInt8]) -> [Range<Int>] {
    var found: [Range<Int>] = []
    for start in bytes.indices.dropLast(Self.head - 1) where heads[Self.head(of: bytes, at: start)] != nil {
      let end = min(bytes.count, start + longest(in: bytes, at: start))
      guard end > start else { continue }
      if let last = found.last, start < last.upperBound {
        found[found.count - 1] = last.lowerBound..<max(end, last.upperBound)
      } else {
        found.append(start..<end)
      }
    }
    return found
  }

  /// The length of the longest string that starts here, or 0.
  private func longest(in bytes: [UInt8], at start: Int) -> Int {
    var hash = Self.basis
    var longest = 0
    for index in start..<min(bytes.count, start + Self.compared) {
      hash = Self.hash(hash, bytes[index])
      if index - start >= Self.head - 1, let text = texts[hash] { longest = max(longest, text.length) }
    }
    return longest
  }

  // FNV-1a, 64 bits. A collision only hides text that is not secret.
  private static let basis: UInt64 = 0xcbf2_9ce4_8422_2325

  private static func hash(_ hash: UInt64, _ byte: UInt8) -> UInt64 { (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }

  private static func head(of bytes: [UInt8], at start: Int) -> UInt32 {
    bytes[start..<(start + head)].reduce(0) { $0 << 8 | UInt32($1) }
  }
}
