import MoongateSDK

/// Keeps what a person sent, and other secrets of a step, out of what is written about it.
///
/// Attack: a provider's log line, or the text of an error that it throws (a decoder's, say), holds the code that was
/// typed, and whoever reads logs signs in with it.
struct Redaction: Sendable {
  /// What stands in their place.
  static let mark = "[redacted]"
  /// What a line may be long, in bytes, before and after.
  private static let longest = 16_384
  private static let mostKept = 2_000

  private let texts: [String]

  /// - Parameter texts: what must not be seen, as it was typed and as it is kept.
  init(_ texts: [String]) { self.texts = texts }

  /// Small letters only; the long ones first. Made where there is something to write: most steps say nothing.
  private var needles: [[UInt8]] {
    var all: Set<[UInt8]> = []
    for text in texts where !text.isEmpty {
      let bytes = Self.folded(text)
      // As typed, without the spaces and hyphens that people put into codes and numbers, and as a link would hold it.
      let trimmed = Array(bytes.drop { $0 <= 0x20 }.reversed().drop { $0 <= 0x20 }.reversed())
      let encoded = Self.folded(PercentEncoding.encode(String(decoding: trimmed, as: UTF8.self)))
      all.formUnion([bytes, trimmed, bytes.filter(Self.isWord), encoded])
    }
    return all.filter { !$0.isEmpty }.sorted { $0.count > $1.count }
  }

  /// The text with a mark wherever one of them stood; cut where it is longer than a line should be.
  func callAsFunction(_ text: String) -> String {
    let bytes = Array(text.utf8.prefix(Self.longest))
    let folded = bytes.map(Self.folded)
    var isHidden = [Bool](repeating: false, count: bytes.count)
    for needle in needles where needle.count <= folded.count {
      for start in 0...(folded.count - needle.count) where folded[start] == needle[0] {
        let end = start + needle.count
        guard folded[start..<end].elementsEqual(needle) else { continue }
        // A country's two letters stand in many words: what is that short counts where it stands alone.
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
    return kept.count <= Self.mostKept
      ? String(decoding: kept, as: UTF8.self) : String(decoding: kept.prefix(Self.mostKept), as: UTF8.self) + "…"
  }

  private static func folded(_ text: String) -> [UInt8] { text.utf8.map(folded) }

  private static func folded(_ byte: UInt8) -> UInt8 { (65...90).contains(byte) ? byte + 32 : byte }

  private static func isWord(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (97...122).contains(byte) || byte >= 0x80
  }
}
