import Foundation

/// A name by which a user signs in, in canonical form: letters, digits, `.`, `_` and `-`.
///
/// Names follow UsernameCaseMapped (RFC 8265 section 3.3): forms of full and half width, capital letters and decomposed
/// letters are the same as their usual forms. Of the characters that RFC 8264 allows, only those are taken that Unicode
/// recommends for identifiers (UTS 39 section 3.1), all of one script (section 5.2).
public struct UserName: Hashable, Sendable {
  /// The canonical form.
  public let text: String

  /// The length of a name in Unicode scalars.
  public static let lengths = 3...32
  /// The longest text that is read, in Unicode scalars. Composing makes a text shorter.
  private static let longestTyped = 128
  /// What account IDs begin with.
  private static let idPrefix = "ac_"

  /// - Returns: nil if the text is not a name. White space and invisible characters at its ends are ignored, because
  ///   they are copied along with names.
  public init?(_ typed: String) {
    let trimmed = EmailAddress.trimmed(typed)
    guard trimmed.count <= Self.longestTyped,
      let text = Self.mapped(String(String.UnicodeScalarView(trimmed))), Self.isValid(text),
      // The rules are applied again to their own result, which they must not change (RFC 8264 section 7).
      Self.mapped(text).map({ $0.unicodeScalars.elementsEqual(text.unicodeScalars) }) ?? false
    else { return nil }
    self.text = text
  }

  /// The form that all names have in common that look alike (UTS 39 section 4); nil for a text without one.
  ///
  /// It is compared and never shown. The data are those of the Unicode version that the program is built with.
  package static func skeleton(of text: String) -> String? { UnicodeSecurity.skeleton(of: text) }

  // MARK: - Mapping

  /// Maps widths and case, and composes letters, in this order. Without a result, the text cannot be a name.
  private static func mapped(_ text: String) -> String? {
    var scalars = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      // The letters of full and half width whose mapping is a letter; Hangul of half width maps to parts of a letter.
      if (0xff01...0xff9f).contains(scalar.value) {
        scalars.append(contentsOf: String(scalar).precomposedStringWithCompatibilityMapping.unicodeScalars)
      } else {
        scalars.append(scalar)
      }
    }
    return UnicodeSecurity.lowercased(String(scalars))?.precomposedStringWithCanonicalMapping
  }

  // MARK: - Rules

  private static func isValid(_ text: String) -> Bool {
    let scalars = text.unicodeScalars
    guard lengths.contains(scalars.count), scalars.allSatisfy(isAllowed),
      // Attack: a name of digits is taken for a phone number, or one of punctuation for an option or a path. A modifier
      // letter, such as U+30FC, can look like a hyphen and is skipped in phone numbers.
      let first = scalars.first, isLetter(first) || isDigit(first),
      scalars.contains(where: { isLetter($0) && $0.properties.generalCategory != .modifierLetter }),
      // Attack: a name that is another account's ID in the commands of operators.
      !text.hasPrefix(idPrefix)
    else { return false }
    return isRightToLeftRuleMet(scalars) && UnicodeSecurity.isOfOneScript(text)
  }

  private static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII {
      return ("a"..."z").contains(scalar) || isDigit(scalar) || scalar == "." || scalar == "_" || scalar == "-"
    }
    let isMark = [.nonspacingMark, .spacingMark].contains(scalar.properties.generalCategory)
    return (isLetter(scalar) || isDigit(scalar) || isMark) && !isException(scalar.value)
      && UnicodeSecurity.isRecommended(scalar)
  }

  private static func isLetter(_ scalar: Unicode.Scalar) -> Bool {
    // Capital letters are mapped; one that is left has no small form.
    [.lowercaseLetter, .otherLetter, .modifierLetter].contains(scalar.properties.generalCategory)
  }

  private static func isDigit(_ scalar: Unicode.Scalar) -> Bool {
    scalar.properties.generalCategory == .decimalNumber
  }

  /// Letters that RFC 8264 excludes (sections 9.6 and 9.9): lengtheners and repetition marks, and the parts of old
  /// Hangul letters. And modifiers, which look like quotation marks.
  private static func isException(_ value: UInt32) -> Bool {
    switch value {
    case 0x02b0...0x02ff: true
    case 0x0640, 0x07fa, 0x302e, 0x302f, 0x3031...0x3035, 0x303b: true
    case 0x1100...0x11ff, 0xa960...0xa97c, 0xd7b0...0xd7fb: true
    default: false
    }
  }

  /// The Bidi rule (RFC 5893 section 2) for a text with letters or digits of a script that is written from right to
  /// left: its parts are shown in the order in which they stand.
  private static func isRightToLeftRuleMet(_ scalars: String.UnicodeScalarView) -> Bool {
    let classes = scalars.map(UnicodeSecurity.direction)
    guard classes.contains(where: { [.rightToLeft, .arabicNumber].contains($0) }) else { return true }
    let last = classes.last { $0 != .mark }
    return classes.first == .rightToLeft && !classes.contains(.leftToRight)
      && last.map { [.rightToLeft, .europeanNumber, .arabicNumber].contains($0) } ?? false
      && !(classes.contains(.europeanNumber) && classes.contains(.arabicNumber))
  }
}

extension Identifier {
  public init(_ name: UserName) { self.init(kind: .name, value: name.text, display: name.text) }

  /// What all names have in common that look like this one; nil for every other kind. At most one account has a name
  /// with this skeleton.
  package var skeleton: String? { kind == .name ? UserName.skeleton(of: value) ?? value : nil }
}

extension InputField {
  /// The field of `begin` that takes a user name.
  public static let userName = InputField(name: "name", kind: .text, isRequired: false)

  /// The kind of identifier that the field takes; nil if it takes something else.
  public var identifierKind: IdentifierKind? {
    switch kind {
    case .phone: .phone
    case .email: .email
    default: self == .userName ? .name : nil
    }
  }
}

extension ProviderDescriptor {
  /// The kind of identifier that a field of the beginning takes; nil if it takes something else, such as a name of
  /// another thing.
  public func identifierKind(of field: InputField) -> IdentifierKind? {
    field.identifierKind == .name && !identifierKinds.contains(.name) ? nil : field.identifierKind
  }
}

extension ProviderInput {
  /// The user name in the field.
  /// - Throws: a problem with the field's name if it is missing or not a valid name.
  public func userName(_ field: String = InputField.userName.name) throws(InputProblem) -> Identifier {
    guard let name = UserName(try text(field)) else {
      throw InputProblem(
        field: field, reason: .invalidInput,
        detail: "Please enter a name of 3 to 32 letters, digits, dots, hyphens and underscores.")
    }
    return Identifier(name)
  }
}
