extension String {
  /// The text in groups for easier typing: `ABCD EFGH`.
  func grouped(by size: Int, with separator: String = " ") -> String {
    let letters = Array(self)
    return stride(from: 0, to: letters.count, by: size).map { String(letters[$0..<min($0 + size, letters.count)]) }
      .joined(separator: separator)
  }
}
