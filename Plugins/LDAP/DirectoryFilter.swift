import Foundation

/// A search filter (RFC 4515) with placeholders in its values: `(|(uid={name})(mail={name}))`.
///
/// Only the forms that servers agree on are accepted, so that a mistake is found when the configuration is loaded.
struct DirectoryFilter: Sendable {
  /// A comparison whose value contains a placeholder.
  struct Comparison: Sendable, Equatable {
    /// In lower case.
    let attribute: String
    /// The value with its placeholders.
    let value: String
  }

  /// A sentence for the operator, to be read behind the quoted filter.
  struct Problem: Error, Equatable {
    let sentence: String
  }

  private enum Part: Sendable {
    case text(String)
    case placeholder(String)
  }

  private let parts: [Part]
  let comparisons: [Comparison]

  /// In lower case, each once.
  var placeholders: Set<String> {
    Set(parts.compactMap { if case .placeholder(let name) = $0 { name.lowercased() } else { nil } })
  }

  init(_ text: String) throws(Problem) {
    var parser = FilterParser(text)
    comparisons = try parser.parse()
    parts = Self.parts(of: text)
  }

  /// The filter for a search.
  ///
  /// Attack: `*)(uid=admin` as a user name, or as the name of an entry that its owner may choose. Every byte of a value
  /// other than a letter, a digit and a few marks is escaped (section 3).
  /// - Parameter value: the value of a placeholder.
  /// - Returns: nil if a placeholder has no value.
  func filled(_ value: (String) -> String?) -> String? {
    var filled = ""
    for part in parts {
      switch part {
      case .text(let text): filled += text
      case .placeholder(let name):
        guard let value = value(name) else { return nil }
        filled += Self.escaped(value)
      }
    }
    return filled
  }

  /// The filter that finds an entry by its ID (`DirectoryEntry.identity`).
  static func id(_ id: UUID) -> String {
    let b = id.uuid
    let guid = [
      b.3, b.2, b.1, b.0, b.5, b.4, b.7, b.6, b.8, b.9, b.10, b.11, b.12, b.13, b.14, b.15,
    ].map { "\\" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }
    return "(|(entryUUID=\(id.uuidString.lowercased()))(objectGUID=\(guid.joined())))"
  }

  static func escaped(_ value: String) -> String {
    var text = ""
    for byte in value.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "."), UInt8(ascii: "@"), UInt8(ascii: "-"),
        UInt8(ascii: "_"):
        text.unicodeScalars.append(Unicode.Scalar(byte))
      default: text += "\\" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }
    return text
  }

  private static func parts(of text: String) -> [Part] {
    var parts: [Part] = []
    var rest = Substring(text)
    while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
      parts += [.text(String(rest[..<open])), .placeholder(String(rest[rest.index(after: open)..<close]))]
      rest = rest[rest.index(after: close)...]
    }
    return parts + [.text(String(rest))]
  }
}

/// Parses a filter by the grammar of RFC 4515 section 3.
private struct FilterParser {
  private static let longest = 4096
  private static let deepest = 16

  private let text: String
  private var rest: Substring
  private var comparisons: [DirectoryFilter.Comparison] = []

  init(_ text: String) {
    self.text = text
    rest = text[...]
  }

  mutating func parse() throws(DirectoryFilter.Problem) -> [DirectoryFilter.Comparison] {
    guard text.utf8.count <= Self.longest else { throw problem("is longer than \(Self.longest) bytes") }
    try filter(depth: 0)
    guard rest.isEmpty else { throw problem("has something behind its last parenthesis") }
    return comparisons
  }

  private var place: Int { text.distance(from: text.startIndex, to: rest.startIndex) + 1 }

  private func problem(_ what: String) -> DirectoryFilter.Problem {
    DirectoryFilter.Problem(sentence: "\(what): write a filter such as (&(objectClass=person)(uid={name}))")
  }

  private mutating func takes(_ character: Character) -> Bool {
    guard rest.first == character else { return false }
    rest.removeFirst()
    return true
  }

  private mutating func filter(depth: Int) throws(DirectoryFilter.Problem) {
    guard depth < Self.deepest else { throw problem("is nested more than \(Self.deepest) times") }
    guard takes("(") else { throw problem("has no opening parenthesis at character \(place)") }
    if takes("&") || takes("|") {
      repeat { try filter(depth: depth + 1) } while rest.first == "("
    } else if takes("!") {
      try filter(depth: depth + 1)
    } else {
      try comparison()
    }
    guard takes(")") else { throw problem("has no closing parenthesis at character \(place)") }
  }

  /// An attribute with options, a comparison or a matching rule such as `:1.2.840.113556.1.4.1941:`, and a value.
  private mutating func comparison() throws(DirectoryFilter.Problem) {
    let form = /([A-Za-z0-9;.-]+)(:([A-Za-z0-9.:-]+:)?|[~<>])?=([^()\x00]*)/
    guard let found = rest.prefixMatch(of: form) else {
      throw problem("has no comparison such as uid=x at character \(place)")
    }
    let value = String(found.4)
    guard value.replacing(/\\[0-9A-Fa-f]{2}/, with: "").firstIndex(of: "\\") == nil else {
      throw problem("has a \\ without two hexadecimal digits")
    }
    let others = value.replacing(/\{[A-Za-z][A-Za-z0-9-]*\}/, with: "")
    guard !others.contains("{"), !others.contains("}") else {
      throw problem("has a brace that is no placeholder (a brace itself is \\7b or \\7d)")
    }
    // Attack: `(uid=*{name}*)` lets the first letter of a name find its entry, and every spelling that finds an entry
    // has its own attempts.
    let isExact = found.2.map { $0.hasPrefix(":") } ?? true
    guard others == value || isExact && !others.contains("*") && !others.contains("\\") else {
      throw problem("compares a placeholder in another way than exactly")
    }
    if others != value { comparisons.append(.init(attribute: found.1.lowercased(), value: value)) }
    rest = rest[found.range.upperBound...]
  }
}
