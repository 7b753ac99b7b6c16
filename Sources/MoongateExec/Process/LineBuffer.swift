/// Makes lines of bytes as they come, and holds no more of them than one line may have.
struct LineBuffer {
  private let longest: Int
  private var rest: [UInt8] = []

  /// - Parameter longest: bytes of a line with its end.
  init(longest: Int) { self.longest = longest }

  /// The lines that are complete by these bytes, without their ends.
  /// - Returns: `isTooLong` where a line is longer than it may be; what comes after it is not looked at.
  mutating func take(_ bytes: [UInt8]) -> (lines: [[UInt8]], isTooLong: Bool) {
    var lines: [[UInt8]] = []
    var start = bytes.startIndex
    while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
      guard rest.count + (end - start) < longest else { return (lines, true) }
      lines.append(rest + bytes[start..<end])
      rest = []
      start = end + 1
    }
    guard rest.count + (bytes.endIndex - start) < longest else { return (lines, true) }
    rest += bytes[start...]
    return (lines, false)
  }

  /// The same for text that is cut rather than refused: a line that is too long is given as what fits.
  mutating func takeCutting(_ bytes: [UInt8]) -> [[UInt8]] {
    var lines: [[UInt8]] = []
    var start = bytes.startIndex
    while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
      lines.append(Array((rest + bytes[start..<end].prefix(longest)).prefix(longest)))
      rest = []
      start = end + 1
    }
    rest += bytes[start...].prefix(max(0, longest - rest.count))
    return lines
  }

  /// What was written without a line's end behind it.
  mutating func flush() -> [UInt8]? {
    defer { rest = [] }
    return rest.isEmpty ? nil : rest
  }
}
