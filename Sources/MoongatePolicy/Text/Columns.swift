/// Text layout in 80 columns.
enum Columns {
  static let width = 80

  static func pad(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }

  /// Right-aligned.
  static func right(_ text: String, to width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }

  static func cut(_ text: String, to width: Int) -> String {
    text.count <= width ? text : text.prefix(max(1, width - 1)) + "…"
  }

  static func wrapped(_ text: String, indent: Int, width: Int) -> [String] {
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ") {
      if !line.isEmpty, indent + line.count + 1 + word.count > width {
        lines.append(String(repeating: " ", count: indent) + line)
        line = ""
      }
      line += line.isEmpty ? word : " " + word
    }
    return lines + [String(repeating: " ", count: indent) + line]
  }
}

extension String {
  /// The text without trailing spaces.
  var trimmedAtEnd: String {
    var text = self
    while text.last == " " { text.removeLast() }
    return text
  }
}
