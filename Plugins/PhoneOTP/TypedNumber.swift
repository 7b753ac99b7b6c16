/// What a person typed, reduced to what it dials: ASCII digits, with `+` before them where one was typed.
///
/// An allow-list, so that nothing that libphonenumber's own reader knows besides digits can be reached: extensions
/// (`;ext=1`, `x1`, `,1`), letters of vanity numbers, `tel:` and `;phone-context=` would each be another spelling of
/// one phone, or a number that nobody sees.
struct TypedNumber: Equatable {
  /// `+919999999999` or `09999999999`.
  let digits: String

  /// Longer texts are not looked at.
  static let mostScalars = 64

  /// What of it cannot be a number.
  enum Problem: Error, Equatable {
    case empty
    case tooLong
    /// A character that is no digit and no way to space digits.
    case foreignCharacter
  }

  /// - Throws: why it is none.
  init(_ typed: String) throws(Problem) {
    var digits = ""
    var count = 0
    for scalar in typed.unicodeScalars {
      count += 1
      guard count <= Self.mostScalars else { throw .tooLong }
      switch Self.meaning(of: scalar) {
      case .digit(let digit): digits.append(digit)
      case .plus:
        guard digits.isEmpty else { throw .foreignCharacter }
        digits.append("+")
      case .spacing: continue
      case .foreign: throw .foreignCharacter
      }
    }
    guard digits.contains(where: { $0 != "+" }) else { throw .empty }
    self.digits = digits
  }

  private enum Meaning {
    case digit(Character)
    case plus, spacing, foreign
  }

  private static func meaning(of scalar: Unicode.Scalar) -> Meaning {
    switch scalar {
    case "0"..."9": return .digit(Character(scalar))
    case "+", "\u{FF0B}": return .plus
    case " ", "\t", "-", ".", "/", "(", ")", "\u{FF08}", "\u{FF09}", "\u{FF0E}", "\u{FF0F}", "\u{2212}": return .spacing
    default: break
    }
    switch scalar.properties.generalCategory {
    case .decimalNumber:
      // Arabic, Devanagari, full-width and all other scripts' digits stand for the same ten.
      guard let value = scalar.properties.numericValue, let digit = Int(exactly: value), (0...9).contains(digit) else {
        return .foreign
      }
      return .digit(Character(String(digit)))
    case .spaceSeparator, .dashPunctuation: return .spacing
    // Marks of writing direction come along when a number is copied from a contact; nobody sees them.
    case .format: return .spacing
    default: return .foreign
    }
  }
}
