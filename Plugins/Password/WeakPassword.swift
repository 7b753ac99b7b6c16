import Foundation

/// Passwords that are guessed first: too short, common, one character over and over, or the person's own email or name.
enum WeakPassword {
  /// - Parameters:
  ///   - emails: the person's addresses.
  ///   - names: first and last name.
  /// - Returns: what to tell the person; nil where the password may be.
  static func sentence(_ password: TypedPassword, emails: [String], names: [String]) -> String? {
    let scalars = password.text.unicodeScalars
    guard scalars.count >= TypedPassword.fewest else { return "Use at least \(TypedPassword.fewest) characters." }
    let folded = password.text.lowercased().precomposedStringWithCanonicalMapping
    guard !scalars.dropFirst().allSatisfy({ $0 == scalars.first }), !CommonPasswords.contains(folded),
      !own(emails: emails, names: names).contains(core(folded)), !emails.contains(folded)
    else { return "This password is too easy to guess. Choose another." }
    return nil
  }

  /// What the person's own words may be put together to, without the digits and signs that people put around them.
  private static func own(emails: [String], names: [String]) -> Set<String> {
    let names = names.map { $0.lowercased().precomposedStringWithCanonicalMapping }.filter { !$0.isEmpty }
    let addresses = emails.flatMap { email in
      let parts = email.split(separator: "@", maxSplits: 1).map(String.init)
      return [email] + parts.prefix(1) + parts.dropFirst().flatMap { [$0, String($0.prefix { $0 != "." })] }
    }
    let joined = [names.joined(), names.reversed().joined()]
    return Set((names + joined + addresses).map(core).filter { $0.count >= 3 })
  }

  /// Its letters from the first to the last, without what is between them but letters and digits: `Ada.Lovelace_99!` is
  /// `adalovelace`.
  private static func core(_ text: String) -> String {
    let trimmed = text.drop { !$0.isLetter }.reversed().drop { !$0.isLetter }.reversed()
    return String(trimmed.filter { $0.isLetter || $0.isNumber })
  }
}
