import MoongateSDK

extension CodeRule {
  /// Reads a code as people type it: with spaces and hyphens, digits of any script, and letters in either case.
  /// - Returns: the code as it was issued, or nil if the text is malformed. A malformed code does not count as an
  ///   attempt.
  package func read(_ typed: String) -> String? {
    // A code has at most ten characters. Much longer text is rejected without reading it.
    guard typed.utf8.count <= 128 else { return nil }
    var code = ""
    for scalar in typed.unicodeScalars {
      if Self.isSeparator(scalar) { continue }
      if let digit = scalar.properties.numericType == .decimal ? scalar.properties.numericValue : nil {
        code.unicodeScalars.append(Unicode.Scalar(UInt8(ascii: "0") + UInt8(digit)))
      } else if scalar.isASCII {
        code += scalar.properties.uppercaseMapping
      } else {
        return nil
      }
    }
    let allowed = alphabet.characters
    guard code.count == length, code.allSatisfy(allowed.contains) else { return nil }
    return code
  }

  /// Whether the character is whitespace or a hyphen, with which people group the characters of a code.
  static func isSeparator(_ scalar: Unicode.Scalar) -> Bool {
    scalar.properties.isWhitespace || hyphens.contains(scalar.value)
  }

  /// Hyphen-minus, soft hyphen, the dashes, the minus sign and the full-width hyphen.
  private static let hyphens: Set<UInt32> = [0x2d, 0xad, 0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2212, 0xff0d]

  /// Generates a code. All codes of the rule are equally likely.
  func make(from random: any RandomSource) -> String {
    let characters = alphabet.characters
    return String((0..<length).map { _ in characters[Int(random.uniform(below: UInt32(characters.count)))] })
  }

  /// The field in which the user enters the code.
  var field: InputField { InputField(name: "code", kind: alphabet == .digits ? .digits : .text, length: length) }
}

extension CodeTexts {
  /// The policy's message in a language, with its placeholders filled in.
  func text(code: String, service: String, in language: any MessageLanguage) -> String {
    language.text(
      message, ["code": code, "service": service, "minutes": String(max(1, rule.lifetime.components.seconds / 60))])
  }
}
