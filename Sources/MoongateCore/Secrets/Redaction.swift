import MoongateSDK

/// Removes what a client sent, and other secrets of a step, from text that is logged or stored about it.
///
/// Attack: a provider's log line, or the text of an error that it throws (such as a decoder's), contains the code that
/// was entered, and someone who reads logs signs in with it.
struct Redaction: Sendable {
  /// The replacement text.
  static let mark = "[redacted]"
  /// The maximum length of a text in bytes, before and after redaction.
  private static let longest = 16_384
  private static let maxBytes = 2_000

  private let texts: [String]

  /// - Parameter texts: the secrets, as entered and as stored.
  init(_ texts: [String]) { self.texts = texts }

  /// The texts to search for, in lower case, longest first. Computed on demand, because most steps log nothing.
  private var needles: [[UInt8]] {
    var all: Set<[UInt8]> = []
    for text in texts where !text.isEmpty {
      let bytes = Self.folded(text)
      // As entered, without the spaces and hyphens that people put into codes and numbers, and percent-encoded as in a
      // link.
      let trimmed = Array(bytes.drop { $0 <= 0x20 }.reversed().drop { $0 <= 0x20 }.reversed())
      let encoded = Self.folded(PercentEncoding.encode(String(decoding: trimmed, as: UTF8.self)))
      all.formUnion([bytes, trimmed, bytes.filter(Self.isWord), encoded])
    }
    return all.filter { !$0.isEmpty }.sorted { $0.count > $1.count }
  }

  /// Returns the text with each secret replaced by the mark, truncated to the maximum length of a line.
  func callAsFunction(_ text: String) -> String {
    let bytes = Array(text.utf8.prefix(Self.longest))
    let folded = bytes.map(Self.folded)
    var isHidden = [Bool](repeating: false, count: bytes.count)
    for needle in needles where needle.count <= folded.count {
      for start in 0...(folded.count - needle.count) where folded[start] == needle[0] {
        let end = start + needle.count
        guard folded[start..<end].elementsEqual(needle) else { continue }
        // A short text, such as a country's two letters, occurs in many words, so it only counts as a separate word.
        if needle.count < 4 {
          if start > 0, Self.isWord(folded[start - 1]) { continue }
          if end < folded.count, Self.isWord(folded[end]) { continue }
        }
        for index in start..<end { isHidden[index] = true }
      }
    }
    var kept: [UInt8] = []
    for index in bytes.indices {
      if !isHidden[index] {
        kept.append(bytes[index])
      } else if index == 0 || !isHidden[index - 1] {
        kept += Self.mark.utf8
      }
    }
    return kept.count <= Self.maxBytes
      ? String(decoding: kept, as: UTF8.self) : String(decoding: kept.prefix(Self.maxBytes), as: UTF8.self) + "…"
  }

  private static func folded(_ text: String) -> [UInt8] { text.utf8.map(folded) }

  private static func folded(_ byte: UInt8) -> UInt8 { (65...90).contains(byte) ? byte + 32 : byte }

  private static func isWord(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (97...122).contains(byte) || byte >= 0x80
  }
}
