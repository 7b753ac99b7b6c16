import Foundation

/// An email address in canonical form, for all providers that read one. If two spellings of one mailbox were treated as
/// different, an attacker would have two budgets of guesses.
///
/// Accepts the common form of RFC 5321 section 4.1.2: a local part without quotes or comments, and a domain of at least
/// two labels. Case does not matter. International domains are converted to ASCII (RFC 5890). `a+b` and `a` are
/// different addresses, because the meaning of `+` depends on the mail system.
public struct EmailAddress: Hashable, Sendable {
  /// The part before the `@`, in lower case.
  public let local: String
  /// The domain in lower case and ASCII: `xn--bcher-kva.example`.
  public let domain: String

  /// `local@domain`.
  public var text: String { "\(local)@\(domain)" }

  /// - Returns: nil if the text is not a valid address. White space and invisible characters at its ends are ignored,
  ///   because they are copied along with addresses.
  public init?(_ typed: String) {
    // Attack: CR and LF in an address become lines of an email's header; quotes, brackets, commas and semicolons add a
    // second recipient. Only characters of an unquoted local part are accepted.
    let trimmed = Self.trimmed(typed)
    guard trimmed.count <= 512, let at = trimmed.lastIndex(of: "@") else { return nil }
    let local = String(String.UnicodeScalarView(trimmed[..<at])).lowercased()
    guard (1...64).contains(local.utf8.count), local.utf8.allSatisfy(Self.isLocalByte), !local.hasPrefix("."),
      !local.hasSuffix("."),
      !local.contains("..")
    else { return nil }
    guard let domain = Self.domain(String(String.UnicodeScalarView(trimmed[trimmed.index(after: at)...]))) else {
      return nil
    }
    self.local = local
    self.domain = domain
    // RFC 5321 section 4.5.3.1.3: a path has at most 256 octets including its brackets.
    guard text.utf8.count <= 254 else { return nil }
  }

  /// The text without white space (the property White_Space) and invisible characters (the category Cf) at its ends.
  public static func trimmed(_ typed: String) -> Substring.UnicodeScalarView {
    let scalars = typed.unicodeScalars
    guard let first = scalars.firstIndex(where: { !isMarginal($0) }),
      let last = scalars.lastIndex(where: { !isMarginal($0) })
    else { return scalars[scalars.endIndex...] }
    return scalars[first...last]
  }

  private static func isMarginal(_ scalar: Unicode.Scalar) -> Bool {
    scalar.properties.isWhitespace || scalar.properties.generalCategory == .format
  }

  /// `atext` of RFC 5322 section 3.2.3, and the dot.
  private static func isLocalByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
    default: "!#$%&'*+-/=?^_`{|}~.".utf8.contains(byte)
    }
  }

  private static func domain(_ typed: String) -> String? {
    // Reject characters with a meaning in URLs before the URL parser sees them: `:`, `/`, `%`, `[`, `@`, …
    guard typed.lowercased().utf8.allSatisfy({ $0 >= 0x80 || isLabelByte($0) || $0 == UInt8(ascii: ".") }) else {
      return nil
    }
    let ascii: String
    if typed.utf8.allSatisfy({ $0 < 0x80 }) {
      ascii = typed.lowercased()
    } else {
      // UTS #46, as browsers map host names.
      guard let host = URLComponents(string: "http://\(typed)/")?.encodedHost else { return nil }
      ascii = host.lowercased()
    }
    let labels = ascii.split(separator: ".", omittingEmptySubsequences: false)
    guard labels.count >= 2, ascii.utf8.count <= 253,
      labels.allSatisfy({
        (1...63).contains($0.utf8.count) && $0.utf8.allSatisfy(isLabelByte) && !$0.hasPrefix("-") && !$0.hasSuffix("-")
      }),
      // A domain that ends in digits is an IP address, which is not accepted.
      labels.last?.contains(where: \.isLetter) ?? false
    else { return nil }
    return ascii
  }

  private static func isLabelByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
    default: false
    }
  }
}

extension Identifier {
  /// The address as an identifier. Policies can read its `domain`.
  public init(_ address: EmailAddress) {
    self.init(kind: .email, value: address.text, display: address.text, attributes: ["domain": address.domain])
  }
}

extension FactField {
  /// `f.email.domain`, which every identifier created from an `EmailAddress` has.
  public static let emailDomain = FactField(name: "domain", kind: .text, of: .email, help: "the domain after the @")
}

extension ProviderInput {
  /// The email address in the field.
  /// - Throws: a problem with the field's name if it is missing or not a valid address.
  public func email(_ name: String = "email") throws(InputProblem) -> Identifier {
    guard let address = EmailAddress(try text(name)) else {
      throw InputProblem(field: name, reason: .invalidEmail, detail: "Please enter a valid email address.")
    }
    return Identifier(address)
  }
}
