/// Swift source with spaces instead of comments and string literals, except for the expressions in them. Lines and
/// columns stay the same.
enum PlainCode {
  /// A string literal that has begun.
  private struct Text {
    let end: [UInt8]
    let escape: [UInt8]
    let isOneLine: Bool
    /// The open parentheses in its interpolation; nil outside of one.
    var depth: Int?

    init?(opening rest: ArraySlice<UInt8>) {
      let hashes = rest.prefix { $0 == UInt8(ascii: "#") }
      let quotes = rest.dropFirst(hashes.count).prefix(3).prefix { $0 == .quote }
      guard !quotes.isEmpty else { return nil }
      isOneLine = quotes.count < 3
      end = Array(isOneLine ? quotes.prefix(1) : quotes) + hashes
      escape = [UInt8(ascii: "\\")] + hashes
    }
  }

  static func of(_ source: [UInt8]) -> [UInt8] {
    var code = source
    var texts: [Text] = []
    var index = 0
    while index < source.count {
      // Most bytes neither begin nor end anything.
      if texts.isEmpty, !source[index].mayOpen {
        index += 1
        continue
      }
      let rest = source[index...]
      var wiped = texts.last.map { $0.depth == nil } ?? false ? 1 : 0
      if let text = texts.last, text.depth == nil {
        if rest.starts(with: text.end) {
          wiped = text.end.count
          texts.removeLast()
        } else if rest.starts(with: text.escape) {
          wiped = text.escape.count + 1
          if rest.dropFirst(text.escape.count).first == .open { texts[texts.count - 1].depth = 0 }
        } else if rest.first == .newline, text.isOneLine {
          // A quote in a regular expression begins no text.
          texts.removeLast()
        }
      } else if rest.starts(with: "//".utf8) {
        wiped = rest.prefix { $0 != .newline }.count
      } else if rest.starts(with: "/*".utf8) {
        wiped = 2
        while index + wiped < source.count, !source[(index + wiped)...].starts(with: "*/".utf8) { wiped += 1 }
        wiped += 2
      } else if let text = Text(opening: rest) {
        wiped = text.end.count
        texts.append(text)
      } else if let depth = texts.last?.depth {
        if rest.first == .open { texts[texts.count - 1].depth = depth + 1 }
        if rest.first == .close {
          texts[texts.count - 1].depth = depth == 0 ? nil : depth - 1
          if depth == 0 { wiped = 1 }
        }
      }
      for place in index..<min(index + wiped, source.count) where source[place] != .newline { code[place] = .space }
      index += max(1, wiped)
    }
    return code
  }
}

extension UInt8 {
  static let space = UInt8(ascii: " ")
  static let newline = UInt8(ascii: "\n")
  static let quote = UInt8(ascii: "\"")
  static let open = UInt8(ascii: "(")
  static let close = UInt8(ascii: ")")
  static let less = UInt8(ascii: "<")
  static let greater = UInt8(ascii: ">")
  static let dash = UInt8(ascii: "-")

  /// The first letter of `func`, `init`, `subscript` or `var`.
  var isInitial: Bool {
    self == UInt8(ascii: "f") || self == UInt8(ascii: "i") || self == UInt8(ascii: "s") || self == UInt8(ascii: "v")
  }

  /// A letter, a digit or an underscore of ASCII.
  var isInName: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  /// Whether a comment or a string literal may begin with it.
  var mayOpen: Bool { self == .quote || self == UInt8(ascii: "/") || self == UInt8(ascii: "#") }
  var opens: Bool { self == .open || self == UInt8(ascii: "[") || self == UInt8(ascii: "{") }
  var closes: Bool { self == .close || self == UInt8(ascii: "]") || self == UInt8(ascii: "}") }
}
