extension ProviderDescriptor {
  /// What its author got wrong, a sentence each; empty where it is well formed. A program refuses to start with a provider that has any,
  /// and the conformance suite names them.
  public var mistakes: [String] {
    guard sdk <= SDKVersion.current, sdk >= 1 else {
      return ["it was written for version \(sdk) of MoongateSDK, and this program has version \(SDKVersion.current): update the program"]
    }
    var found: [String] = []
    if ProviderName(rawValue: name.rawValue) == nil { found.append("its name `\(name)` is ill-formed: \(Self.form)") }
    found += Self.mistakes(in: beginFields.map(\.name), "the begin field")
    found += Self.mistakes(in: submitFields.map(\.name), "the submit field")
    // These two are words of the calls themselves.
    if beginFields.contains(where: { $0.name == "provider" }) {
      found.append("no begin field can be called `provider`: calls name the provider by it")
    }
    if submitFields.contains(where: { $0.name == "code_verifier" }) { found.append("no submit field can be called `code_verifier`") }
    found += Self.mistakes(in: settings.map(\.name), "the setting")
    found += settings.compactMap(\.mistake)
    found += Self.mistakes(in: outcomes.map(\.reason.rawValue), "the outcome")
    for outcome in outcomes where !Self.isSentence(outcome.sentence) {
      found.append("the outcome `\(outcome.reason.rawValue)` needs one sentence for the person: plain text of at most 300 bytes")
    }
    found += Self.mistakes(in: facts.map { "\((of($0)?.rawValue).map { "\($0)_" } ?? "")\($0.name)" }, "the fact")
    for fact in facts {
      guard let kind = of(fact), identifierKinds.contains(kind) else {
        found.append("the fact `\(fact.name)` is of identifiers that the provider does not declare to read")
        continue
      }
    }
    if let words {
      let known = Set((beginFields + submitFields).map(\.name))
      for label in words.labels.keys.sorted() where !known.contains(label) { found.append("a label is for `\(label)`, which is no field") }
      let texts = [words.title] + Array(words.labels.values) + Array(words.links.values) + (words.instruction.isEmpty ? [] : [words.instruction])
      if !texts.allSatisfy(Self.isSentence) { found.append("its words must be plain text of at most 300 bytes each, and its title not empty") }
    }
    return found
  }

  /// Whose attribute the fact is.
  public func of(_ fact: FactField) -> IdentifierKind? { fact.of ?? identifierKinds.first }

  fileprivate static let form = "lower-case letters, digits and underscores, a letter first, 48 characters at most"

  private static func mistakes(in names: [String], _ what: String) -> [String] {
    var seen: Set<String> = []
    return names.compactMap { name in
      if ProviderName(rawValue: name) == nil { return "\(what) `\(name)` is ill-formed: \(form)" }
      return seen.insert(name).inserted ? nil : "\(what) `\(name)` is declared twice"
    }
  }

  static func isSentence(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= 300 && !text.unicodeScalars.contains { $0.value < 0x20 || (0x7f...0x9f).contains($0.value) }
  }
}

extension SettingField {
  /// What is wrong with its own declaration.
  fileprivate var mistake: String? {
    if case .choice(let words) = kind, words.isEmpty { return "the setting `\(name)` offers no choice" }
    guard let standard else { return nil }
    if isRequired { return "the setting `\(name)` is required and has a default: one of them is in vain" }
    return standard.fits(kind) ? nil : "the default of the setting `\(name)` does not fit its kind"
  }
}
