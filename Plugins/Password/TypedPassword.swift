import Foundation
import MoongateSDK

/// A password in Unicode normalization form C, so that different keyboards give the same password (NIST SP 800-63B
/// section 3.1.1.2; RFC 8265 section 4.2). It is not truncated, trimmed or case-folded, and NUL, spaces and emoji are
/// allowed. Its length is counted in Unicode scalars, as the same section requires.
struct TypedPassword {
  static let fewest = 8
  static let most = 1024

  let text: String

  /// - Throws: an error if it is empty or too long.
  init(_ typed: String, field: String) throws(InputProblem) {
    guard !typed.isEmpty else {
      throw InputProblem(field: field, reason: .invalidInput, detail: "Please enter your password.")
    }
    // Attack: normalizing a text of megabytes. A character has at most four bytes and is composed of only a few
    // scalars.
    let composed = typed.utf8.count <= Self.most * 16 ? typed.precomposedStringWithCanonicalMapping : typed
    guard composed.unicodeScalars.count <= Self.most else {
      throw InputProblem(field: field, reason: .invalidInput, detail: "A password has at most 1,024 characters.")
    }
    text = composed
  }

  /// The bytes to hash.
  var bytes: [UInt8] { Array(text.utf8) }
}
