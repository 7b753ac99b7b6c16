/// A code as a person types or pastes it: the code of a message or of an app, a recovery code, a passcode.
///
/// This is the one rule for all codes, so that no provider refuses what another one reads. White space, dashes
/// (Unicode's category Pd, and U+2212), and invisible characters (category Cf) mean nothing: people group codes with
/// them, and programs put them into texts that are copied. Decimal digits of any script and full-width letters are read
/// as ASCII. Everything else stays, so that the provider refuses it.
///
/// ```swift
/// guard let digits = TypedCode(try input.text("code")).digits, digits.utf8.count == 6 else { … }
/// ```
///
/// A field of kind `digits` arrives in this form already. Use it for codes with letters, which are fields of kind
/// `text`.
public struct TypedCode: Sendable, Equatable {
  /// The characters of the code. Letters keep their case.
  public let text: String

  /// Takes time in proportion to the length of the text.
  public init(_ typed: String) {
    var scalars = String.UnicodeScalarView()
    for scalar in typed.unicodeScalars where !Self.isIgnored(scalar) { scalars.append(Self.ascii(scalar)) }
    text = String(scalars)
  }

  /// The code if it has only digits, as ASCII; nil otherwise. Empty if nothing is left of the text.
  public var digits: String? {
    text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? text : nil
  }

  /// Whether the character means nothing in a code.
  public static func isIgnored(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.properties.isWhitespace || scalar == "\u{2212}" { return true }
    switch scalar.properties.generalCategory {
    case .dashPunctuation, .format: return true
    default: return false
    }
  }

  /// Maps decimal digits and full-width letters to ASCII.
  private static func ascii(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
    if scalar.isASCII { return scalar }
    switch scalar.value {
    case 0xff21...0xff3a: return Unicode.Scalar(UInt8(scalar.value - 0xff21) + UInt8(ascii: "A"))
    case 0xff41...0xff5a: return Unicode.Scalar(UInt8(scalar.value - 0xff41) + UInt8(ascii: "a"))
    default: break
    }
    guard scalar.properties.numericType == .decimal, let value = scalar.properties.numericValue,
      let digit = UInt8(exactly: value), digit < 10
    else { return scalar }
    return Unicode.Scalar(UInt8(ascii: "0") + digit)
  }
}
