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

    init(_ what: String) { sentence = "\(what): write a filter such as (&(objectClass=person)(uid={name}))" }
  }

  private let text: String
  let comparisons: [Comparison]

  /// In lower case, each once.
  var placeholders: Set<String> { Set(text.matches(of: /\{([^{}]*)\}/).map { $0.1.lowercased() }) }

  private static let longest = 4096
  private static let deepest = 15

  /// An attribute with options, a comparison or a matching rule such as `:1.2.840.113556.1.4.1941:`, and a value. Each
  /// is replaced by a mark, and then each group of marks by one, from the inside.
  init(_ text: String) throws(Problem) {
    guard text.utf8.count <= Self.longest else { throw Problem("is longer than \(Self.longest) bytes") }
    let form = /\(([A-Za-z0-9;.-]+)(:(?:[A-Za-z0-9.:-]+:)?|[~<>])?=([^()]*)\)/
    var rest = text.replacing(form, with: "\0")
    for _ in 1...Self.deepest { rest = rest.replacing(/\((?:[&|]\x00+|!\x00)\)/, with: "\0") }
    guard rest == "\0", !text.utf8.contains(0) else {
      let (opening, closing) = (text.count(where: { $0 == "(" }), text.count(where: { $0 == ")" }))
      throw Problem(
        opening == closing
          ? "is not valid, or nested more than \(Self.deepest) times"
          : "has \(opening) opening and \(closing) closing parentheses")
    }
    var comparisons: [Comparison] = []
    for found in text.matches(of: form) {
      let value = String(found.3)
      guard try Self.hasPlaceholder(value, comparedBy: found.2) else { continue }
      comparisons.append(Comparison(attribute: found.1.lowercased(), value: value))
    }
    self.comparisons = comparisons
    self.text = text
  }

  private static func hasPlaceholder(_ value: String, comparedBy form: Substring?) throws(Problem) -> Bool {
    guard value.replacing(/\\[0-9A-Fa-f]{2}/, with: "").firstIndex(of: "\\") == nil else {
      throw Problem("has a \\ without two hexadecimal digits")
    }
    let others = value.replacing(/\{[A-Za-z][A-Za-z0-9-]*\}/, with: "")
    guard !others.contains("{"), !others.contains("}") else {
      throw Problem("has a brace that is no placeholder (a brace itself is \\7b or \\7d)")
    }
    // Attack: `(uid=*{name}*)` lets the first letter of a name find its entry, and every spelling that finds an entry
    // has its own attempts.
    let isExact = form.map { $0.hasPrefix(":") } ?? true
    guard others == value || isExact && !others.contains("*") && !others.contains("\\") else {
      throw Problem("compares a placeholder in another way than exactly")
    }
    return others != value
  }

  /// The filter for a search.
  ///
  /// Attack: `*)(uid=admin` as a user name, or as the name of an entry that its owner may choose. Every byte of a value
  /// other than a letter, a digit and a few marks is escaped (section 3).
  /// - Parameter value: the value of a placeholder, in lower case.
  /// - Returns: nil if a placeholder has no value.
  func filled(_ value: (String) -> String?) -> String? {
    guard placeholders.allSatisfy({ value($0) != nil }) else { return nil }
    return text.replacing(/\{([^{}]*)\}/) { Self.escaped(value($0.1.lowercased()) ?? "") }
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
}
