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
    found += Self.mistakes(in: flows.map(\.name), "the flow")
    found += presentationMistakes
    if let words {
      let said = Array(words.page.values) + [words.name].compactMap(\.self) + words.notices.values.flatMap { [$0.subject, $0.event] }
      if !said.allSatisfy(Self.isSentence) { found.append("its words must be plain text of at most 300 bytes each, and its title not empty") }
      let known = Set((beginFields + submitFields).map(\.name))
      for label in words.labels.keys.sorted() where !known.contains(label) { found.append("a label is for `\(label)`, which is no field") }
      let texts = [words.title] + Array(words.labels.values) + Array(words.links.values) + (words.instruction.isEmpty ? [] : [words.instruction])
      if !texts.allSatisfy(Self.isSentence) { found.append("its words must be plain text of at most 300 bytes each, and its title not empty") }
      for (tag, texts) in words.translations.sorted(by: { $0.key < $1.key }) {
        if !Self.isTag(tag) {
          found.append("`\(tag.prefix(40))` is no tag of a language: its words are translated under tags such as `hi` or `pt-BR`")
        }
        if !texts.allSatisfy({ !$0.key.isEmpty && Self.isPlain($0.value, most: Self.longestTranslation) }) {
          found.append("its words in `\(tag.prefix(40))` must be plain text of at most \(Self.longestTranslation) bytes each, by the English text")
        }
      }
    }
    return found
  }

  /// What is wrong with how it wants to be shown.
  private var presentationMistakes: [String] {
    var found: [String] = []
    if let page {
      if ProviderName(rawValue: page) == nil || Self.reservedPages.contains(page) {
        found.append(
          "it cannot have the page `\(page.prefix(48))`: \(Self.reservedPages.contains(page) ? "the gateway has one of this name" : Self.form)")
      }
      switch presentation {
      case .form?, .externalSite?: found.append("it has a page of its own only with boxes for a code or a pad for digits")
      default: break
      }
    }
    if case .digitPad(let count, let current, let new)? = presentation {
      if !(4...12).contains(count) { found.append("a pad takes 4 to 12 digits") }
      if current == new { found.append("its pad has one field for the current secret and for a new one") }
      for name in [current, new] where Self.reservedPadFields.contains(name) {
        found.append("its pad cannot have the field `\(name)`: the page's form has one of this name")
      }
      for name in [current, new] where !submitFields.contains(where: { $0.name == name && $0.kind == .digits }) {
        found.append("its pad is for the field `\(name.prefix(48))`, which is no submit field of digits")
      }
    }
    if case .field(let kind, _)? = entrance, !identifierKinds.contains(kind) || kind == .federated {
      found.append("it is offered by a field for an identifier that it does not read")
    }
    return found
  }

  /// Fields that the form of a pad has of its own.
  private static let reservedPadFields: Set<String> = ["confirm", "code", "id", "flow", "action", "check", "return_to"]

  /// The last parts of addresses under /auth that are the gateway's own.
  private static let reservedPages: Set<String> = [
    "login", "register", "logout", "account", "step", "choose", "callback", "hook", "assets", "error", "delete", "export", "leave", "outbox",
  ]

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

  static func isSentence(_ text: String) -> Bool { DescriptorText.isSentence(text) }

  /// In bytes. What a step shows may be longer than a sentence, and most scripts take three bytes a letter.
  private static let longestTranslation = 2_000

  fileprivate static func isPlain(_ text: String, most: Int) -> Bool {
    !text.isEmpty && text.utf8.count <= most && !text.unicodeScalars.contains { $0.value < 0x20 || (0x7f...0x9f).contains($0.value) }
  }

  private static func isTag(_ text: String) -> Bool {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard let language = parts.first, (2...3).contains(language.utf8.count) else { return false }
    return parts.allSatisfy { (2...8).contains($0.utf8.count) && $0.utf8.allSatisfy { (48...57).contains($0) || (65...90).contains($0 & 0xdf) } }
  }
}

/// What may stand in the texts of a descriptor.
public enum DescriptorText {
  /// Whether the text is one line of plain text, not empty, of at most 300 bytes.
  public static func isSentence(_ text: String) -> Bool { ProviderDescriptor.isPlain(text, most: 300) }
}

extension PolicySource {
  /// The file's name without its folder and its ending: `pin_set`.
  public var name: String {
    let last = file.split(separator: "/").last.map(String.init) ?? file
    return last.hasSuffix(".lua") ? String(last.dropLast(4)) : last
  }

  /// A file that a target embeds.
  public init(file: String, bytes: [UInt8]) { self.init(file: file, text: String(decoding: bytes, as: UTF8.self)) }
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
