/// Splits incoming bytes into lines and buffers at most one line.
struct LineBuffer {
  private let longest: Int
  private var incomplete: [UInt8] = []

  /// - Parameter longest: the maximum length of a line in bytes, including its end.
  init(longest: Int) { self.longest = longest }

  /// The lines that these bytes complete, without their line ends.
  /// - Returns: `isTooLong` if a line exceeds the limit; the bytes after it are ignored.
  mutating func take(_ bytes: [UInt8]) -> (lines: [[UInt8]], isTooLong: Bool) {
    var lines: [[UInt8]] = []
    var start = bytes.startIndex
    while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
      guard incomplete.count + (end - start) < longest else { return (lines, true) }
      lines.append(incomplete + bytes[start..<end])
      incomplete = []
      start = end + 1
    }
    guard incomplete.count + (bytes.endIndex - start) < longest else { return (lines, true) }
    incomplete += bytes[start...]
    return (lines, false)
  }

  /// The same for text, where a line that is too long is truncated instead.
  mutating func takeTruncating(_ bytes: [UInt8]) -> [[UInt8]] {
    var lines: [[UInt8]] = []
    var start = bytes.startIndex
    while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
      lines.append(Array((incomplete + bytes[start..<end].prefix(longest)).prefix(longest)))
      incomplete = []
      start = end + 1
    }
    incomplete += bytes[start...].prefix(max(0, longest - incomplete.count))
    return lines
  }

  /// The incomplete last line.
  mutating func flush() -> [UInt8]? {
    defer { incomplete = [] }
    return incomplete.isEmpty ? nil : incomplete
  }
}
