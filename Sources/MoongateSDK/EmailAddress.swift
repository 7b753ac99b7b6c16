import Foundation

/// An email address in its one canonical spelling, for all providers that read one: two spellings that reach one
/// mailbox and are taken for two would be two budgets of guesses.
///
/// What it takes is the everyday form of RFC 5321 section 4.1.2: a local part without quotes or comments, and a domain
/// of two labels or more. Case does not count. An international domain is one with its ASCII form (RFC 5890). `a+b` and
/// `a` are two: what a mail system makes of `+` is its own affair.
public struct EmailAddress: Hashable, Sendable {
  /// Before the `@`, in lower case.
  public let local: String
  /// In lower case and ASCII: `xn--bcher-kva.example`.
  public let domain: String

  /// `local@domain`.
  public var text: String { "\(local)@\(domain)" }

  /// - Returns: nil where what was typed is no such address. Space around it is not looked at.
  public init?(_ typed: String) {
    // Attack: CR and LF in an address become lines of a mail's head; quotes, brackets, commas and semicolons a second
    // recipient. Only what may stand in an unquoted local part comes through.
    let trimmed = typed.unicodeScalars.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }
      .reversed()
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
    // RFC 5321 section 4.5.3.1.3: a path has 256 octets with its brackets.
    guard text.utf8.count <= 254 else { return nil }
  }

  /// `atext` of RFC 5322 section 3.2.3, and the dot.
  private static func isLocalByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
    default: "!#$%&'*+-/=?^_`{|}~.".utf8.contains(byte)
    }
  }

  private static func domain(_ typed: String) -> String? {
    // Nothing that means something else in a URL reaches its parser: `:`, `/`, `%`, `[`, `@`, …
    guard typed.lowercased().utf8.allSatisfy({ $0 >= 0x80 || isLabelByte($0) || $0 == UInt8(ascii: ".") }) else {
      return nil
    }
    let ascii: String
    if typed.utf8.allSatisfy({ $0 < 0x80 }) {
      ascii = typed.lowercased()
    } else {
      // UTS #46, as browsers map the hosts of addresses.
      guard let host = URLComponents(string: "http://\(typed)/")?.encodedHost else { return nil }
      ascii = host.lowercased()
    }
    let labels = ascii.split(separator: ".", omittingEmptySubsequences: false)
    guard labels.count >= 2, ascii.utf8.count <= 253,
      labels.allSatisfy({
        (1...63).contains($0.utf8.count) && $0.utf8.allSatisfy(isLabelByte) && !$0.hasPrefix("-") && !$0.hasSuffix("-")
      }),
      // An address of digits is an IP address, which nobody's mailbox is at.
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
  /// The address as what names a person; policies may ask for its `domain`.
  public init(_ address: EmailAddress) {
    self.init(kind: .email, value: address.text, display: address.text, attributes: ["domain": address.domain])
  }
}

extension FactField {
  /// `f.email.domain`, which every identifier made of an `EmailAddress` carries.
  public static let emailDomain = FactField(name: "domain", kind: .text, of: .email, help: "what stands behind its @")
}

extension ProviderInput {
  /// The email address in the field.
  /// - Throws: a problem that names the field where it is missing, or is none.
  public func email(_ name: String = "email") throws(InputProblem) -> Identifier {
    guard let address = EmailAddress(try text(name)) else {
      throw InputProblem(field: name, reason: .invalidEmail, detail: "Please enter a valid email address.")
    }
    return Identifier(address)
  }
}
