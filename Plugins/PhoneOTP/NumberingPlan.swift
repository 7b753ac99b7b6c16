import CPhoneNumber

/// The international numbering plans, from libphonenumber.
enum NumberingPlan {
  /// A possible phone number.
  struct Number: Equatable {
    let e164: String
    /// `+91 99999 99999`.
    let international: String
    /// ISO 3166-1 alpha-2; `001` for numbers of no country.
    let country: String
    let type: NumberType
    /// Whether it is in an assigned range.
    let isValid: Bool
  }

  /// The values of the fact `f.phone.type`.
  enum NumberType: String {
    case mobile, fixed, voip, unknown
  }

  /// Why the text is not a number.
  enum Problem: Error, Equatable {
    case tooShort, tooLong, noNumber
  }

  /// A known region, in upper case.
  struct Region: Equatable {
    let code: String
    /// The calling code, for example 91 for India.
    let callingCode: Int32

    /// - Returns: nil unless the text is the two-letter code of a known region, in either case.
    init?(_ text: String) {
      let code = text.uppercased()
      guard code.utf8.count == 2, code.utf8.allSatisfy({ (65...90).contains($0) }) else { return nil }
      let callingCode = cphone_calling_code(code)
      guard callingCode != 0 else { return nil }
      self.code = code
      self.callingCode = callingCode
    }
  }

  /// Parses a number.
  /// - Parameter region: the country of a number without `+`; nil for a number with its country code.
  /// - Throws: why the text is not a number.
  static func read(_ typed: TypedNumber, in region: Region?) throws(Problem) -> Number {
    var number = cphone_number()
    // To libphonenumber, ZZ is an unknown region.
    switch cphone_read(typed.digits, typed.digits.utf8.count, region?.code ?? "ZZ", &number) {
    case CPHONE_POSSIBLE: break
    case CPHONE_TOO_SHORT: throw .tooShort
    case CPHONE_TOO_LONG: throw .tooLong
    default: throw .noNumber
    }
    return Number(
      e164: text(of: number.e164), international: text(of: number.international), country: text(of: number.country),
      type: type(of: number.kind), isValid: number.is_valid == 1)
  }

  /// Formats an incomplete number for the region; nil if that is not possible.
  static func format(_ typed: TypedNumber, in region: Region?) -> String? {
    var out = [CChar](repeating: 0, count: 128)
    let length = cphone_format_typed(typed.digits, typed.digits.utf8.count, region?.code ?? "ZZ", &out, out.count)
    return length > 0 ? String(decoding: out.prefix(length).map(UInt8.init(bitPattern:)), as: UTF8.self) : nil
  }

  private static func type(of kind: cphone_kind) -> NumberType {
    switch kind {
    case CPHONE_MOBILE: .mobile
    case CPHONE_FIXED: .fixed
    case CPHONE_VOIP: .voip
    default: .unknown
    }
  }

  /// Fixed-size C arrays are imported as tuples; the text ends at the first NUL.
  private static func text<Characters>(of characters: Characters) -> String {
    withUnsafeBytes(of: characters) { bytes in String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }
  }
}
