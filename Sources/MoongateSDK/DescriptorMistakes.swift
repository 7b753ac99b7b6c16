extension ProviderDescriptor {
  /// More than 60 lines: one group of checks for each part of a declaration.
  /// The mistakes in the declaration, one sentence each; empty if it is well formed. A program refuses to start with a
  /// provider that has any, and the conformance suite reports them.
  public var mistakes: [String] {
    guard SDKVersion.supported.contains(sdk) else {
      let remedy = sdk > SDKVersion.current ? "update the program" : "update the provider"
      return [
        "it was written for version \(sdk) of MoongateSDK, and this program has version \(SDKVersion.current): \(remedy)"
      ]
    }
    var found: [String] = []
    if ProviderName(rawValue: name.rawValue) == nil { found.append("its name `\(name)` is ill-formed: \(Self.form)") }
    if Self.reservedNames.contains(name.rawValue) {
      found.append("no provider can be called `\(name)`: the gateway keeps its own values under this name")
    }
    found += Self.mistakes(in: beginFields.map(\.name), "the begin field")
    found += Self.mistakes(in: submitFields.map(\.name), "the submit field")
    found += Self.mistakes(in: callbackFields.map(\.name), "the callback field")
    if callbackFields.count > 16 { found.append("it declares more than 16 callback fields") }
    if callbackFields.contains(where: { ["returned", "code_verifier"].contains($0.name) }) {
      found.append("no callback field can be called `returned` or `code_verifier`: the gateway has these itself")
    }
    // Both names are used by the API calls themselves.
    if beginFields.contains(where: { $0.name == "provider" }) {
      found.append("no begin field can be called `provider`: calls name the provider by it")
    }
    if submitFields.contains(where: { $0.name == "code_verifier" }) {
      found.append("no submit field can be called `code_verifier`")
    }
    if (beginFields + submitFields).contains(where: { $0.name == "remember" }) {
      found.append("no begin or submit field can be called `remember`: calls have this field themselves")
    }
    found += settingMistakes
    found += Self.mistakes(in: outcomes.map(\.reason.rawValue), "the outcome")
    for outcome in outcomes where !Self.isSentence(outcome.sentence) {
      found.append(
        "the outcome `\(outcome.reason.rawValue)` needs one sentence for the person: plain text of at most 300 bytes")
    }
    found += Self.mistakes(in: deliveryReasons.map(\.reason.rawValue), "the delivery reason")
    for reason in deliveryReasons where !Self.isSentence(reason.sentence) {
      found.append(
        "the delivery reason `\(reason.reason.rawValue)` needs one sentence for the person: plain text of at most 300 bytes"
      )
    }
    found += Self.mistakes(in: facts.map { "\((of($0)?.rawValue).map { "\($0)_" } ?? "")\($0.name)" }, "the fact")
    for fact in facts where of(fact).map({ !identifierKinds.contains($0) }) ?? false {
      found.append("the fact `\(fact.name)` is of identifiers that the provider does not declare to read")
    }
    found += choiceMistakes
    found += Self.mistakes(in: flows.map(\.name), "the flow")
    if !Self.recordVersions.contains(recordVersion) {
      found.append("the version of its records is \(recordVersion): count from 1")
    }
    if let maintenanceInterval, !Self.maintenanceIntervals.contains(maintenanceInterval) {
      found.append("its maintenance interval is \(maintenanceInterval): 10 seconds to 30 days")
    }
    found += recheckMistakes
    for document in wellKnown where !Self.isDocument(document) {
      found.append(
        "it cannot publish `\(document.prefix(48))`: a document is named by lower-case letters, digits and hyphens, and `moongate` is the gateway's"
      )
    }
    if Set(wellKnown).count != wellKnown.count { found.append("it names a well-known document twice") }
    found += presentationMistakes
    found += wordMistakes
    return found
  }

  /// The mistakes in the settings. A table of settings is a name beside those of the settings.
  private var settingMistakes: [String] {
    var found = Self.mistakes(in: settings.filter { $0.placeInTable == nil }.map(\.name), "the setting")
    let inTables = Dictionary(grouping: settings.compactMap(\.placeInTable), by: \.table)
    for (table, fields) in inTables.sorted(by: { $0.key < $1.key }) {
      found += Self.mistakes(in: [table] + settings.map(\.name).filter { $0 == table }, "the table of settings")
      found += Self.mistakes(in: fields.map(\.name), "the setting in `\(table)`")
      if Self.reservedTables.contains(table) {
        found.append("no table of settings can be called `\(table)`: the gateway has it itself")
      }
    }
    return found + settings.compactMap(\.mistake)
  }

  private var recheckMistakes: [String] {
    guard rechecks else { return [] }
    var found: [String] = []
    if !identifierKinds.contains(.federated) { found.append("it declares `rechecks` and proves no federated identity") }
    if let name = settings.map(\.name).first(where: Self.recheckSettings.contains) {
      found.append("no setting can be called `\(name)`: the gateway has it itself")
    }
    return found
  }

  /// The mistakes in the kinds of identifier that operators choose from.
  private var choiceMistakes: [String] {
    guard !choosableKinds.isEmpty else { return [] }
    var found: [String] = []
    if !identifierKinds.allSatisfy(choosableKinds.contains) {
      found.append("it reads a kind of identifier by default that `\(Self.identifyBy)` does not offer")
    }
    if settings.contains(where: { $0.name == Self.identifyBy }) {
      found.append("no setting can be called `\(Self.identifyBy)`: the gateway has it itself")
    }
    return found
  }

  /// The mistakes in the words.
  private var wordMistakes: [String] {
    guard let words else { return [] }
    var found: [String] = []
    let said =
      Array(words.page.values) + [words.name].compactMap(\.self)
      + words.notices.values.flatMap { [$0.subject, $0.event] }
    if !said.allSatisfy(Self.isSentence) {
      found.append("its words must be plain text of at most 300 bytes each, and its title not empty")
    }
    var known = Set((beginFields + submitFields).map(\.name))
    // Fields of kinds that the operator has not chosen have labels all the same.
    known.formUnion(choosableKinds.map(\.rawValue))
    for label in words.labels.keys.sorted() where !known.contains(label) {
      found.append("its words have a label for `\(label)`, which is not a field")
    }
    let texts =
      [words.title] + Array(words.labels.values) + Array(words.links.values)
      + (words.instruction.isEmpty ? [] : [words.instruction])
    if !texts.allSatisfy(Self.isSentence) {
      found.append("its words must be plain text of at most 300 bytes each, and its title not empty")
    }
    for (tag, texts) in words.translations.sorted(by: { $0.key < $1.key }) {
      if !Self.isTag(tag) {
        found.append(
          "its words are translated to `\(tag.prefix(40))`, which is not a language tag: write one such as `hi` or `pt-BR`"
        )
      }
      if !texts.allSatisfy({ !$0.key.isEmpty && Self.isPlain($0.value, most: Self.longestTranslation) }) {
        found.append(
          "its words in `\(tag.prefix(40))` must be plain text of at most \(Self.longestTranslation) bytes each, by the English text"
        )
      }
    }
    return found
  }

  /// The mistakes in the presentation.
  private var presentationMistakes: [String] {
    var found: [String] = []
    if let page {
      if ProviderName(rawValue: page) == nil || Self.reservedPages.contains(page) {
        found.append(
          "it cannot have the page `\(page.prefix(48))`: \(Self.reservedPages.contains(page) ? "the gateway has one of this name" : Self.form)"
        )
      }
      switch presentation {
      case .form?, .externalSite?, .ceremony?:
        found.append("it can have its own page only with boxes for a code or a pad for digits")
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
        found.append("its pad is for the field `\(name.prefix(48))`, which is not a submit field of digits")
      }
    }
    if role.contains(.provesIdentifier) == identifierKinds.isEmpty {
      found.append(
        identifierKinds.isEmpty
          ? "its role says that it proves an identifier, but it declares no kind of identifier"
          : "it declares kinds of identifier, but its role does not say that it proves one")
    }
    if mapsClaims, !identifierKinds.contains(.federated) {
      found.append("it passes claims of another site, but does not declare that it proves federated identities")
    }
    let objects = submitFields.filter { $0.kind == .json }
    if case .ceremony(let button)? = presentation {
      if objects.count != 1 {
        found.append("its ceremony needs one submit field of kind json, which takes the answer of the browser")
      }
      if !Self.isSentence(button) {
        found.append("the button of its ceremony needs words: plain text of at most 300 bytes")
      }
    } else if role.contains(.findsAccount) {
      found.append("it finds accounts without a ceremony: declare the presentation `.ceremony`")
    } else if let object = objects.first {
      found.append(
        "its field `\(object.name)` of kind json is filled in by a ceremony: declare the presentation `.ceremony`")
    }
    if let choice = (beginFields + submitFields).first(where: { $0.kind == .choice }) {
      found.append(
        "its declared field `\(choice.name)` is of kind choice: only a round can ask for one, since it says what there is to choose"
      )
    }
    if let object = beginFields.first(where: { $0.kind == .json }) {
      found.append("its begin field `\(object.name)` is of kind json: only submit fields can be")
    }
    if case .field(let kind, _)? = entrance, !identifierKinds.contains(kind) || kind == .federated {
      found.append("it is offered by a field for an identifier that it does not read")
    }
    return found
  }

  /// The setting by which operators choose from `choosableKinds`.
  package static let identifyBy = "identify_by"
  /// The settings of providers that declare `rechecks`.
  package static let (recheck, recheckGrace) = ("recheck", "recheck_grace")
  private static let recheckSettings = [recheck, recheckGrace]
  /// The gateway's own fields of entries in gateway.lua. A provider can have a setting of such a name instead, where
  /// the gateway then has none, but never a table.
  private static let reservedTables: Set<String> = [
    "env", "timeout", recheck, recheckGrace, identifyBy, "title", "label", "icon",
  ]

  /// Names under which the gateway stores and counts what belongs to no provider.
  ///
  /// Attack: a plugin calls itself `apps`, reads the stored values of that name, and has the private key that signs ID
  /// tokens.
  private static let reservedNames: Set<String> = ["app_api", "apps", "token"]

  /// Field names that the page's form uses itself.
  private static let reservedPadFields: Set<String> = ["confirm", "code", "id", "flow", "action", "check", "return_to"]

  /// Path components under /auth that the gateway uses itself.
  private static let reservedPages: Set<String> = [
    "login", "register", "invite", "logout", "account", "step", "choose", "callback", "hook", "assets", "error",
    "delete", "export", "leave", "outbox", "handoff", "forward", "app", "device", "openid",
  ]

  /// The kind of identifier whose attribute the fact is; nil if only the provider's proofs contain it.
  public func of(_ fact: FactField) -> IdentifierKind? { fact.of ?? identifierKinds.first }

  private static let maintenanceIntervals: ClosedRange<Duration> = .seconds(10)...Duration.seconds(30 * 86_400)
  /// Enough for any history of formats.
  private static let recordVersions = 1...1_000_000

  fileprivate static let form = "lower-case letters, digits and underscores, a letter first, 48 characters at most"

  fileprivate static func mistakes(in names: [String], _ what: String, repeated: String = "is declared twice")
    -> [String]
  {
    var seen: Set<String> = []
    return names.compactMap { name in
      if ProviderName(rawValue: name) == nil { return "\(what) `\(name.prefix(60))` is ill-formed: \(form)" }
      return seen.insert(name).inserted ? nil : "\(what) `\(name)` \(repeated)"
    }
  }

  private static func isDocument(_ name: String) -> Bool {
    (1...64).contains(name.utf8.count) && name != "moongate"
      && name.utf8.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || $0 == UInt8(ascii: "-") }
  }

  static func isSentence(_ text: String) -> Bool { DescriptorText.isSentence(text) }

  /// In bytes. What a step shows can be longer than a sentence, and most scripts take three bytes per letter.
  private static let longestTranslation = 2_000

  fileprivate static func isPlain(_ text: String, most: Int) -> Bool {
    !text.isEmpty && text.utf8.count <= most
      && !text.unicodeScalars.contains { $0.value < 0x20 || (0x7f...0x9f).contains($0.value) }
  }

  private static func isTag(_ text: String) -> Bool {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard let language = parts.first, (2...3).contains(language.utf8.count) else { return false }
    return parts.allSatisfy {
      (2...8).contains($0.utf8.count) && $0.utf8.allSatisfy { (48...57).contains($0) || (65...90).contains($0 & 0xdf) }
    }
  }
}

extension InputField {
  /// The maximum number of fields in one round, for which a page has space.
  public static let mostInRound = 16

  /// The mistakes in the fields of one `ask`, one sentence each; empty if they are valid. The gateway answers 503 to a
  /// step with invalid fields.
  public static func mistakes(inRound fields: [InputField]) -> [String] {
    var found = fields.count > mostInRound ? ["it asks for more than \(mostInRound) fields"] : []
    found += ProviderDescriptor.mistakes(in: fields.map(\.name), "the field", repeated: "is asked for twice")
    for name in ["code_verifier", "remember"] where fields.contains(where: { $0.name == name }) {
      found.append("no field can be called `\(name)`")
    }
    for field in fields where !(1...1_000).contains(field.length ?? 1) {
      found.append("the length of the field `\(field.name.prefix(48))` must be from 1 to 1000")
    }
    for field in fields where !field.hasFittingChoices {
      found.append(
        "the field `\(field.name.prefix(48))` needs 1 to 64 different choices if it is of kind choice, and none otherwise"
      )
    }
    return found
  }
}

extension InputField {
  /// Whether it has valid choices if and only if its kind is `choice`.
  private var hasFittingChoices: Bool {
    guard kind == .choice else { return choices == nil }
    let values = (choices ?? []).map(\.value)
    return (1...64).contains(values.count) && Set(values).count == values.count
      && values.allSatisfy { (1...2_000).contains($0.utf8.count) }
  }
}

/// The rules for texts in a descriptor.
public enum DescriptorText {
  /// Whether the text is a single non-empty line of plain text with at most 300 bytes.
  public static func isSentence(_ text: String) -> Bool { ProviderDescriptor.isPlain(text, most: 300) }
}

extension PolicySource {
  /// A file that a target embeds.
  public init(file: String, bytes: [UInt8]) { self.init(file: file, text: String(decoding: bytes, as: UTF8.self)) }
}

extension SettingField {
  /// The mistake in its declaration, if any.
  fileprivate var mistake: String? {
    if case .choice(let words) = kind, words.isEmpty { return "the setting `\(name)` offers no choice" }
    guard let standard else { return nil }
    if isRequired { return "the setting `\(name)` is required and has a default: remove one of the two" }
    return standard.fits(kind) ? nil : "the default of the setting `\(name)` does not fit its kind"
  }
}
