import Foundation

/// Passwords that attackers guess first: too short, common, one repeated character, or the user's email address or
/// names.
enum WeakPassword {
  /// - Parameters:
  ///   - identifiers: the user's addresses and user names.
  ///   - names: first and last name.
  /// - Returns: the message for the user; nil if the password is allowed.
  static func sentence(_ password: TypedPassword, identifiers: [String], names: [String]) -> String? {
    let scalars = password.text.unicodeScalars
    guard scalars.count >= TypedPassword.fewest else { return "Use at least \(TypedPassword.fewest) characters." }
    let folded = password.text.lowercased().precomposedStringWithCanonicalMapping
    guard !scalars.dropFirst().allSatisfy({ $0 == scalars.first }), !CommonPasswords.contains(folded),
      !own(identifiers, names: names).contains(core(folded)), !identifiers.contains(folded)
    else { return "This password is too easy to guess. Choose another." }
    return nil
  }

  /// Combinations of the user's names and addresses, without surrounding digits and punctuation.
  private static func own(_ identifiers: [String], names: [String]) -> Set<String> {
    let names = names.map { $0.lowercased().precomposedStringWithCanonicalMapping }.filter { !$0.isEmpty }
    let addresses = identifiers.flatMap { email in
      let parts = email.split(separator: "@", maxSplits: 1).map(String.init)
      return [email] + parts.prefix(1) + parts.dropFirst().flatMap { [$0, String($0.prefix { $0 != "." })] }
    }
    let joined = [names.joined(), names.reversed().joined()]
    return Set((names + joined + addresses).map(core).filter { $0.count >= 3 })
  }

  /// The text from the first to the last letter, reduced to letters and digits: `Ada.Lovelace_99!` becomes
  /// `adalovelace`.
  private static func core(_ text: String) -> String {
    let trimmed = text.drop { !$0.isLetter }.reversed().drop { !$0.isLetter }.reversed()
    return String(trimmed.filter { $0.isLetter || $0.isNumber })
  }
}
