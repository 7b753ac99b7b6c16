import _FoundationICU

/// What Unicode's standards for identifiers say about texts (UTS 39, UAX 9), from the data of ICU.
///
/// ICU is the one that Foundation is linked with, so that no table is kept here and every gateway of one release has
/// the same data. Its functions have a prefix there.
enum UnicodeSecurity {
  /// The directions that the Bidi rule distinguishes.
  enum Direction {
    case leftToRight, rightToLeft, europeanNumber, arabicNumber, mark, other
  }

  /// In UTF-16 code units: more than any text of a few hundred letters grows to.
  private static let capacity: Int32 = 4_096

  /// The text in lower case, independent of a language.
  static func lowercased(_ text: String) -> String? {
    transformed(text) { source, count, target, status in
      swift_u_strToLower(target, capacity, source, count, "", &status)
    }
  }

  /// The skeleton of the text (UTS 39 section 4).
  static func skeleton(of text: String) -> String? {
    withChecker { checker in
      transformed(text) { source, count, target, status in
        swift_uspoof_getSkeleton(checker, 0, source, count, target, capacity, &status)
      }
    } ?? nil
  }

  /// Whether all letters are of one script, all digits of one decimal system, and no mark is hidden by the letter that
  /// it stands on. Letters and marks of several scripts count for each of them; Japanese and Korean for one.
  static func isOfOneScript(_ text: String) -> Bool {
    withChecker { checker in
      var status = U_ZERO_ERROR
      let checks = [USPOOF_RESTRICTION_LEVEL, USPOOF_MIXED_NUMBERS, USPOOF_INVISIBLE, USPOOF_HIDDEN_OVERLAY]
      swift_uspoof_setChecks(checker, checks.reduce(0) { $0 | Int32($1.rawValue) }, &status)
      swift_uspoof_setRestrictionLevel(checker, USPOOF_SINGLE_SCRIPT_RESTRICTIVE)
      let source = Array(text.utf16)
      let failed = swift_uspoof_check2(checker, source, Int32(source.count), nil, &status)
      return failed == 0 && isSuccess(status)
    } ?? false
  }

  /// Whether Unicode recommends the character for identifiers (UTS 39 section 3.1).
  static func isRecommended(_ scalar: Unicode.Scalar) -> Bool {
    var status = U_ZERO_ERROR
    guard let recommended = swift_uspoof_getRecommendedSet(&status), isSuccess(status) else { return false }
    return swift_uset_contains(recommended, Int32(scalar.value)) != 0
  }

  static func direction(_ scalar: Unicode.Scalar) -> Direction {
    switch swift_u_charDirection(Int32(scalar.value)) {
    case U_LEFT_TO_RIGHT: .leftToRight
    case U_RIGHT_TO_LEFT, U_RIGHT_TO_LEFT_ARABIC: .rightToLeft
    case U_EUROPEAN_NUMBER: .europeanNumber
    case U_ARABIC_NUMBER: .arabicNumber
    case U_DIR_NON_SPACING_MARK: .mark
    default: .other
    }
  }

  /// - Returns: nil if ICU has no data.
  private static func withChecker<Value>(_ body: (OpaquePointer) -> Value) -> Value? {
    var status = U_ZERO_ERROR
    guard let checker = swift_uspoof_open(&status) else { return nil }
    defer { swift_uspoof_close(checker) }
    return isSuccess(status) ? body(checker) : nil
  }

  /// The text that a function of ICU writes; nil if it fails or the text is too long.
  private static func transformed(
    _ text: String,
    _ body: (UnsafePointer<UInt16>, Int32, UnsafeMutablePointer<UInt16>, inout UErrorCode) -> Int32
  ) -> String? {
    let source = Array(text.utf16)
    var status = U_ZERO_ERROR
    let target = [UInt16](unsafeUninitializedCapacity: Int(capacity)) { buffer, count in
      guard let start = buffer.baseAddress else { return }
      let written = source.withUnsafeBufferPointer { units in
        units.baseAddress.map { body($0, Int32(units.count), start, &status) } ?? 0
      }
      count = Int(max(0, min(written, capacity)))
    }
    return isSuccess(status) ? String(validating: target, as: UTF16.self) : nil
  }

  /// Warnings, such as that the text fills the buffer, are negative.
  private static func isSuccess(_ status: UErrorCode) -> Bool { status.rawValue <= U_ZERO_ERROR.rawValue }
}
