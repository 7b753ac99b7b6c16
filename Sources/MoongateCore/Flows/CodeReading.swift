import MoongateSDK

extension CodeRule {
  /// Reads a code as people type it (`TypedCode`), with letters in either case.
  /// - Returns: the code as it was issued, or nil if the text is malformed. A malformed code does not count as an
  ///   attempt.
  package func read(_ typed: String) -> String? {
    // A code has at most ten characters. Much longer text is rejected without reading it.
    guard typed.utf8.count <= 128 else { return nil }
    let code = TypedCode(typed).text
    // Only ASCII is mapped to upper case: U+017F would become an S, and a German sharp s two of them.
    guard code.utf8.count == length, code.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
    let issued = code.uppercased()
    return issued.allSatisfy(alphabet.characters.contains) ? issued : nil
  }

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
