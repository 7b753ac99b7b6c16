import MoongateSDK

/// The problems of a program's introduction, as sentences for its author.
package struct ProgramProblem: Error, Sendable {
  package let sentences: [String]

  package init(sentences: [String]) { self.sentences = sentences }
}

extension Introduction {
  /// Limits on declarations: enough for any provider, and small enough for pages.
  private static let maxFields = 16
  private static let maxSettings = 64
  private static let maxFacts = 32
  private static let maxDeliveryReasons = 16
  private static let longestHelp = 300
  /// The maximum length of a Lua text, in bytes.
  private static let longestText = 32_768
  private static let maxTranslations = 2_000

  /// Converts the introduction to a provider descriptor.
  /// - Parameter readers: the gateway's parsers for each kind of identifier. Programs do not parse identifiers, so they
  ///   cannot violate the rule of one spelling per user.
  /// - Throws: all problems of the introduction.
  func descriptor(name: ProviderName, source: String, readers: [IdentifierKind: any CodeProvider])
    throws(ProgramProblem) -> ProviderDescriptor
  {
    var wrong: [String] = []
    let reader = identifier.flatMap { readers[$0.kind] }
    if let identifier, reader == nil {
      wrong.append("uses identifiers of kind `\(identifier.rawValue)`, which this gateway cannot read")
    }
    checkShape(&wrong)
    checkFields(&wrong)
    if policy.isEmpty || policy.utf8.count > Self.longestText {
      wrong.append("its `policy` must be the text of a policy.lua, at most 32 KiB")
    }
    let descriptor = ProviderDescriptor(
      name: name, beginFields: (reader?.descriptor.beginFields ?? []) + (begin ?? []).map(\.field),
      submitFields: shape == .code ? [InputField(name: "code", kind: .digits)] : (submit ?? []).map(\.field),
      settings: settingFields(&wrong), policy: PolicySource(file: "\(source) (policy)", text: policy),
      flows: ownFlows(source, &wrong),
      cases: ownCases(source, &wrong),
      identifierKinds: (identifier.map { [$0.kind] } ?? []) + (federated ?? false ? [.federated] : []),
      hashesSecrets: hashes ?? false,
      outcomes: declaredOutcomes(&wrong), deliveryReasons: declaredDeliveryReasons(&wrong),
      facts: (reader?.descriptor.facts ?? []) + ownFacts(&wrong), words: stepWords(&wrong),
      presentation: shownAs(&wrong),
      entrance: offeredBy(&wrong), page: page,
      role: ownRole(&wrong), mayProveSeveralFactors: multiFactor ?? false, rechecks: recheck ?? false,
      callbackFields: callback?.map(\.field) ?? ProviderDescriptor.standardCallbackFields,
      receivesWebhooks: hook ?? false,
      recordVersion: recordVersion ?? 1, maintenanceInterval: maintain.map { .seconds($0) })
    wrong += descriptor.mistakes
    guard wrong.isEmpty else { throw ProgramProblem(sentences: wrong.map { String($0.prefix(300)) }) }
    return descriptor
  }

  /// Checks the members that a code provider requires or cannot have.
  private func checkShape(_ wrong: inout [String]) {
    if shape == .code {
      if identifier == nil { wrong.append("is a code provider without `identifier`: \"phone\" or \"email\"") }
      for (field, said) in [("begin", begin), ("submit", submit)] where !(said ?? []).isEmpty {
        wrong.append("is a code provider with `\(field)`: the gateway asks for the identifier and the code itself")
      }
      if hashes ?? false {
        wrong.append("is a code provider with `hashes`: the gateway compares its codes")
      }
      if federated ?? false {
        wrong.append("is a code provider with `federated`: a code proves only the identifier that it was sent to")
      }
    }
  }

  private func checkFields(_ wrong: inout [String]) {
    for (place, said) in [("begin", begin ?? []), ("submit", submit ?? []), ("callback", callback ?? [])] {
      if said.count > Self.maxFields { wrong.append("`\(place)` has more than \(Self.maxFields) fields") }
      for field in said where !(1...1_000).contains(field.length ?? 1) {
        wrong.append("`\(place)`: the length of `\(field.name.prefix(48))` must be from 1 to 1000")
      }
    }
  }

  private func stepWords(_ wrong: inout [String]) -> StepWords? {
    var links: [StepPurpose: String] = [:]
    for (name, text) in words?.links ?? [:] {
      if let purpose = StepPurpose(rawValue: name) {
        links[purpose] = text
      } else {
        wrong.append("its `words` have a link for `\(name.prefix(48))`, which is not a purpose")
      }
    }
    if (words?.translations ?? [:]).reduce(0, { $0 + $1.value.count }) > Self.maxTranslations {
      wrong.append("its `words` have more than \(Self.maxTranslations) translations")
    }
    var notices: [StepPurpose: FactorNotice] = [:]
    for (name, notice) in words?.notices ?? [:] {
      if let purpose = StepPurpose(rawValue: name), purpose != .prove {
        notices[purpose] = notice
      } else {
        wrong.append("its `words` have a notice for `\(name.prefix(48))`: use set, change or disable")
      }
    }
    return words.map {
      StepWords(
        title: $0.title, name: $0.name, instruction: $0.instruction ?? "", labels: $0.labels ?? [:], links: links,
        page: $0.page ?? [:],
        notices: notices, translations: $0.translations ?? [:])
    }
  }

  /// Limits on the flows of a program.
  private static let maxFlows = 16

  private func ownFlows(_ source: String, _ wrong: inout [String]) -> [PolicySource] {
    let said = (flows ?? [:]).sorted { $0.key < $1.key }
    if said.count > Self.maxFlows { wrong.append("brings more than \(Self.maxFlows) flows") }
    for (name, text) in said where text.isEmpty || text.utf8.count > Self.longestText {
      wrong.append("its flow `\(name.prefix(48))` must be the text of a flows/NAME.lua, at most 32 KiB")
    }
    return said.prefix(Self.maxFlows).map { PolicySource(file: "\(source) flows/\($0.key).lua", text: $0.value) }
  }

  private func ownCases(_ source: String, _ wrong: inout [String]) -> PolicySource? {
    guard let cases else { return nil }
    if cases.isEmpty || cases.utf8.count > Self.longestText {
      wrong.append("its `cases` must be the text of a cases.lua, at most 32 KiB")
    }
    return PolicySource(file: "\(source) cases.lua", text: cases)
  }

  private func shownAs(_ wrong: inout [String]) -> Presentation? {
    guard let presentation else { return nil }
    switch presentation.kind {
    case .codeEntry:
      if shape != .code { wrong.append("has the presentation `code_entry` but is not a code provider") }
      return .codeEntry
    case .form: return .form
    case .digitPad:
      guard let count = presentation.count, let current = presentation.current, let new = presentation.new else {
        wrong.append("its `digit_pad` needs `count`, `current` and `new`")
        return nil
      }
      return .digitPad(count: count, current: current, new: new)
    case .externalSite:
      guard let button = presentation.button, DescriptorText.isSentence(button) else {
        wrong.append("its `external_site` needs `button`: its label, plain text of at most 300 bytes")
        return nil
      }
      return .externalSite(button: button)
    case .ceremony:
      guard let button = presentation.button else {
        wrong.append("its `ceremony` needs `button`: its label, plain text of at most 300 bytes")
        return nil
      }
      return .ceremony(button: button)
    }
  }

  /// A program's button has no icon, because an icon would be markup in the gateway's page.
  private func offeredBy(_ wrong: inout [String]) -> Entrance? {
    guard let entrance else { return nil }
    let priority = entrance.priority ?? 0
    switch entrance.kind {
    case .field:
      guard let identifier = entrance.identifier else {
        wrong.append("its `entrance` of kind `field` needs `identifier`: \"phone\" or \"email\"")
        return nil
      }
      return .field(kind: identifier.kind, priority: priority)
    case .button, .link:
      guard let label = entrance.label, DescriptorText.isSentence(label) else {
        wrong.append("its `entrance` needs `label`: plain text of at most 300 bytes")
        return nil
      }
      return entrance.kind == .link ? .link(label: label) : .button(label: label, icon: nil, priority: priority)
    }
  }

  private func ownRole(_ wrong: inout [String]) -> ProviderRole? {
    guard let role else { return nil }
    var roles: ProviderRole = []
    for word in role {
      switch word {
      case "identifier": roles.insert(.provesIdentifier)
      case "factor": roles.insert(.keepsFactor)
      case "several": roles.insert(.keepsSeveral)
      case "finds_account": roles.insert(.findsAccount)
      default:
        wrong.append(
          "its `role` names `\(word.prefix(48))`: use \"identifier\", \"factor\", \"several\" and \"finds_account\""
        )
      }
    }
    return roles
  }

  private func settingFields(_ wrong: inout [String]) -> [SettingField] {
    let said = settings ?? []
    if said.count > Self.maxSettings { wrong.append("declares more than \(Self.maxSettings) settings") }
    return said.prefix(Self.maxSettings).compactMap { setting in
      let name = setting.name
      // An entry in gateway.lua mixes both kinds of settings in one table.
      guard !["env", "timeout"].contains(name) else {
        wrong.append("declares a setting `\(name)`, which is reserved for the gateway")
        return nil
      }
      // Attack: a program declares `env.TOKEN`, and what the operator writes for the gateway goes to it as a setting.
      guard !name.contains(".") else {
        wrong.append("declares a setting `\(name.prefix(48))`: a name has no dot. Declare a setting of kind `table`")
        return nil
      }
      let kind: SettingField.Kind
      switch setting.kind {
      case .text: kind = .text
      case .secret: kind = .secret
      case .flag: kind = .flag
      case .list: kind = .list
      case .table: kind = .table
      case .file: kind = .file
      case .choice: kind = .choice(setting.choices ?? [])
      case .number:
        let (least, most) = (setting.minimum ?? -1e15, setting.maximum ?? 1e15)
        kind = .number(min(least, most)...max(least, most))
        if least > most { wrong.append("the setting `\(name.prefix(48))`: its minimum is above its maximum") }
      }
      let help = setting.help ?? ""
      if !Self.isLine(help) {
        wrong.append(
          "the setting `\(name.prefix(48))`: its help must be one line of at most \(Self.longestHelp) characters")
      }
      return SettingField(
        name: name, kind: kind, isRequired: setting.required ?? false,
        help: help.isEmpty ? "what the program calls \(name)" : help,
        standard: setting.default?.value)
    }
  }

  private func ownFacts(_ wrong: inout [String]) -> [FactField] {
    let said = facts ?? []
    if said.count > Self.maxFacts { wrong.append("declares more than \(Self.maxFacts) facts") }
    if shape == .code, !said.isEmpty {
      wrong.append("is a code provider with `facts`: the gateway reads the identifier and its facts")
    }
    for fact in said where !Self.isLine(fact.help ?? "") {
      wrong.append(
        "the fact `\(fact.name.prefix(48))`: its help must be one line of at most \(Self.longestHelp) characters")
    }
    return said.prefix(Self.maxFacts).map(\.field)
  }

  private static func isLine(_ help: String) -> Bool {
    help.count <= longestHelp && !help.unicodeScalars.contains { $0.value < 32 || $0.value == 127 }
  }

  private func declaredDeliveryReasons(_ wrong: inout [String]) -> [DeliveryReason] {
    let said = deliveryReasons ?? []
    if shape == .full, !said.isEmpty {
      wrong.append("has `delivery_reasons` but is not a code provider")
    }
    if said.count > Self.maxDeliveryReasons {
      wrong.append("declares more than \(Self.maxDeliveryReasons) delivery reasons")
    }
    return said.prefix(Self.maxDeliveryReasons).compactMap { said in
      guard let reason = RefusalReason(rawValue: said.reason) else {
        wrong.append(
          "\"\(said.reason.prefix(60))\" is not a valid delivery reason: use lower-case letters, digits and _")
        return nil
      }
      return DeliveryReason(reason, said.sentence, isPermanent: said.permanent ?? false)
    }
  }

  private func declaredOutcomes(_ wrong: inout [String]) -> [Outcome] {
    (outcomes ?? []).compactMap { said in
      guard let reason = RefusalReason(rawValue: said.reason) else {
        wrong.append(
          "\"\(said.reason.prefix(60))\" is not a valid outcome reason: use lower-case letters, digits and _")
        return nil
      }
      return Outcome(reason, said.sentence, isFailure: said.counts ?? true)
    }
  }
}
