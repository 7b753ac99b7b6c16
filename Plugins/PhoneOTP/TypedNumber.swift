/// The dialed characters of an input: ASCII digits, with an optional leading `+`.
///
/// An allow-list keeps other syntax from libphonenumber's parser: extensions (`;ext=1`, `x1`, `,1`), vanity letters,
/// `tel:` and `;phone-context=` would be other spellings of one phone, or a hidden number.
struct TypedNumber: Equatable {
  /// `+919999999999` or `09999999999`.
  let digits: String

  /// The maximum length of an input, in Unicode scalars.
  static let maxScalars = 64

  /// Why the input cannot be a number.
  enum Problem: Error, Equatable {
    case empty
    case tooLong
    /// A character that is neither a digit nor a separator.
    case foreignCharacter
  }

  /// - Throws: why it is not a number.
  init(_ typed: String) throws(Problem) {
    var digits = ""
    var count = 0
    for scalar in typed.unicodeScalars {
      count += 1
      guard count <= Self.maxScalars else { throw .tooLong }
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

  /// libphonenumber's VALID_PUNCTUATION beside white space and dashes, of full and of half width: the minus sign, full
  /// stops, solidi, brackets, tildes and the long-vowel mark, which keyboards for Japanese have in place of a hyphen.
  /// Its `x` is left out, because it begins an extension.
  private static let punctuation = Set(
    "\u{2212}./()[]~\u{2053}\u{223C}\u{30FC}\u{FF0E}\u{FF0F}\u{FF08}\u{FF09}\u{FF3B}\u{FF3D}\u{FF5E}\u{FF70}"
      .unicodeScalars)

  private static func meaning(of scalar: Unicode.Scalar) -> Meaning {
    switch scalar {
    case "0"..."9": return .digit(Character(scalar))
    case "+", "\u{FF0B}": return .plus
    case let scalar where punctuation.contains(scalar) || scalar.properties.isWhitespace: return .spacing
    default: break
    }
    switch scalar.properties.generalCategory {
    case .decimalNumber:
      // Digits of all scripts (Arabic, Devanagari, full-width and others) are mapped to ASCII.
      guard let value = scalar.properties.numericValue, let digit = Int(exactly: value), (0...9).contains(digit) else {
        return .foreign
      }
      return .digit(Character(String(digit)))
    case .dashPunctuation: return .spacing
    // Invisible bidirectional marks are copied with numbers from contacts.
    case .format: return .spacing
    default: return .foreign
    }
  }
}
