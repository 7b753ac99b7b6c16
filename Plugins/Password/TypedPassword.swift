import Foundation
import MoongateSDK

/// A password as it was typed, in Unicode's composed form (NFC), so that one person's `é` on two keyboards is one
/// password (NIST SP 800-63B section 3.1.1.2; RFC 8265 section 4.2). Nothing else is done to it: nothing is cut,
/// trimmed or folded, and NUL, space and emoji are characters like any other. Characters are counted as Unicode
/// scalars, as the same section asks.
struct TypedPassword {
  static let fewest = 8
  static let most = 1024

  let text: String

  /// - Throws: where it is empty or longer than any can be.
  init(_ typed: String, field: String) throws(InputProblem) {
    guard !typed.isEmpty else {
      throw InputProblem(field: field, reason: .invalidInput, detail: "Please enter your password.")
    }
    // Attack: a text of megabytes to normalize. No character takes more than four bytes, and none is made of more than
    // a few.
    let composed = typed.utf8.count <= Self.most * 16 ? typed.precomposedStringWithCanonicalMapping : typed
    guard composed.unicodeScalars.count <= Self.most else {
      throw InputProblem(field: field, reason: .invalidInput, detail: "A password has at most 1,024 characters.")
    }
    text = composed
  }

  /// What is hashed: all of it.
  var bytes: [UInt8] { Array(text.utf8) }
}
