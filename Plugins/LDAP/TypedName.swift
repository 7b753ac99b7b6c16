import Foundation
import MoongateSDK

/// A user name as it was typed, and in the form by which attempts are counted.
struct TypedName: Sendable, Equatable {
  static let field = InputField(name: "username", kind: .text)
  private static let most = 128
  /// In bytes. An identifier has at most 512.
  private static let longest = 480

  /// Without white space at its ends.
  let text: String
  let canonical: String

  init(_ typed: String) throws(InputProblem) {
    let scalars = EmailAddress.trimmed(typed)
    text = String(String.UnicodeScalarView(scalars))
    canonical = text.utf8.count <= Self.longest ? Self.canonical(text) : ""
    guard (1...Self.most).contains(scalars.count), (1...Self.longest).contains(canonical.utf8.count) else {
      let sentence =
        scalars.isEmpty ? "Please enter your user name." : "A user name has at most 128 characters."
      throw InputProblem(field: Self.field.name, reason: .invalidInput, detail: sentence)
    }
    guard !canonical.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
      throw InputProblem(
        field: Self.field.name, reason: .invalidInput, detail: "A user name has no control characters.")
    }
  }

  /// One form for all spellings that directories take for the same name (RFC 4518 section 2): case, compatible
  /// characters, invisible ones and repeated spaces make no difference.
  ///
  /// Attack: `ada`, `ADA`, `ａｄａ` and `a\u{AD}da` would each have their own attempts at Ada's password.
  static func canonical(_ text: String) -> String {
    let folded = text.precomposedStringWithCompatibilityMapping.lowercased().precomposedStringWithCompatibilityMapping
    let visible = folded.unicodeScalars.filter { $0.properties.generalCategory != .format }
    return String(String.UnicodeScalarView(visible)).split(separator: " ").joined(separator: " ")
  }
}

/// A password as it was typed.
enum TypedSecret {
  static let field = InputField(name: "password", kind: .password)
  private static let most = 1024

  /// The bytes for the directory (RFC 4513 section 5.1.3): in Unicode normalization form C, so that every keyboard
  /// gives the same.
  static func bytes(in input: ProviderInput) throws(InputProblem) -> [UInt8] {
    let typed = try input.text(field.name)
    // Attack: a NUL in front is an empty password to a server that takes it as a text of C, and a bind with an empty
    // password succeeds.
    guard !typed.isEmpty, !typed.utf8.contains(0) else {
      throw InputProblem(field: field.name, reason: .invalidInput, detail: "Please enter your password.")
    }
    guard typed.utf8.count <= most * 16, typed.unicodeScalars.count <= most else {
      throw InputProblem(
        field: field.name, reason: .invalidInput, detail: "A password has at most 1,024 characters.")
    }
    return Array(typed.precomposedStringWithCanonicalMapping.utf8)
  }
}
