import Foundation
import MoongateSDK

/// A password as it was typed, and as it is stored: in the form of RFC 8265 (OpaqueString, section 4.2), so that
/// different keyboards give the same password (NIST SP 800-63B-4 section 3.1.1.2). All spaces are U+0020, and the text
/// is in Unicode normalization form C. It is not truncated, trimmed or case-folded, and NUL and emoji are allowed. Its
/// length is counted in Unicode scalars, as NIST requires.
struct TypedPassword {
  static let fewest = 8
  static let most = 1024

  /// The form in which new passwords are stored.
  let text: String
  private let typed: String

  /// - Throws: an error if it is empty or too long.
  init(_ typed: String, field: String) throws(InputProblem) {
    guard !typed.isEmpty else {
      throw InputProblem(field: field, reason: .invalidInput, detail: "Please enter your password.")
    }
    // Attack: normalizing a text of megabytes. A character has at most four bytes and is composed of only a few
    // scalars.
    let composed = typed.utf8.count <= Self.most * 16 ? Self.spaced(typed).precomposedStringWithCanonicalMapping : typed
    guard composed.unicodeScalars.count <= Self.most else {
      throw InputProblem(field: field, reason: .invalidInput, detail: "A password has at most 1,024 characters.")
    }
    text = composed
    self.typed = typed
  }

  /// The bytes to hash.
  var bytes: [UInt8] { Array(text.utf8) }

  /// The forms that a stored hash may have been made of, each once: the gateway's own first, then those of other
  /// programs, which hash NFC alone, or what a keyboard sends (macOS sent decomposed letters). At most three.
  var spellings: [[UInt8]] {
    var all = [bytes]
    for other in [typed.precomposedStringWithCanonicalMapping, typed].map({ Array($0.utf8) }) where !all.contains(other)
    { all.append(other) }
    return all
  }

  /// The text with U+0020 in place of every other space (the category Zs).
  private static func spaced(_ text: String) -> String {
    let scalars = text.unicodeScalars.map { $0.properties.generalCategory == .spaceSeparator ? " " : $0 }
    return String(String.UnicodeScalarView(scalars))
  }
}
