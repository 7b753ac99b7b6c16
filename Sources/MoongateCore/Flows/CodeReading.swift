import MoongateSDK

extension CodeRule {
  /// Reads a code as people type it: spaces and hyphens between, digits of any script, letters in either case.
  /// - Returns: the code as it was issued, or nil where it cannot be one: that is malformed, and no guess.
  package func read(_ typed: String) -> String? {
    // A code has ten characters at most; what is far longer is not looked at.
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

  /// Whether it is a space or a hyphen, by which people group the characters of a code.
  static func isSeparator(_ scalar: Unicode.Scalar) -> Bool {
    scalar.properties.isWhitespace || hyphens.contains(scalar.value)
  }

  /// Hyphen-minus, soft hyphen, the dashes, minus, full-width hyphen.
  private static let hyphens: Set<UInt32> = [0x2d, 0xad, 0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2212, 0xff0d]

  /// A fresh code, each of the whole space equally likely.
  func make(from random: any RandomSource) -> String {
    let characters = alphabet.characters
    return String((0..<length).map { _ in characters[Int(random.uniform(below: UInt32(characters.count)))] })
  }

  /// The field that asks for it.
  var field: InputField { InputField(name: "code", kind: alphabet == .digits ? .digits : .text, length: length) }
}

extension CodeTexts {
  /// The policy's message in a language, with its parts filled in.
  func text(code: String, service: String, in language: any MessageLanguage) -> String {
    language.text(
      message, ["code": code, "service": service, "minutes": String(max(1, rule.lifetime.components.seconds / 60))])
  }
}
