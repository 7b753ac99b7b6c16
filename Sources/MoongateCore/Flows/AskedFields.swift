import Logging
import MoongateSDK

// What a provider receives of a request: the fields that it asked for, and nothing else.

extension ProviderInput {
  /// The same without the fields that are not named.
  func only(_ names: some Sequence<String>) -> ProviderInput {
    let names = Set(names)
    return ProviderInput(fields: fields.filter { names.contains($0.key) }, defaultRegion: defaultRegion)
  }

  /// The same with the declared fields of a provider only: what it receives where it has not asked for anything in
  /// particular yet.
  func declared(by descriptor: ProviderDescriptor) -> ProviderInput {
    only(descriptor.beginFields.map(\.name) + descriptor.submitFields.map(\.name))
  }
}

extension StepRecord {
  /// What its provider has asked for in this round. After a redirect, that is what the other site may send back; the
  /// submit fields beside it are for apps that bring a grant of their own.
  func asked(_ descriptor: ProviderDescriptor) -> [InputField] {
    guard redirectTo != nil else { return fields ?? descriptor.submitFields }
    let returned = descriptor.callbackFields
    let others = descriptor.submitFields.filter { field in !returned.contains { $0.name == field.name } }
    return returned + others.map { InputField(name: $0.name, kind: $0.kind, length: $0.length, isRequired: false) }
  }
}

extension InputField {
  /// The most bytes of a field's text: more than any secret, identifier or token needs.
  static let longest = 16_384
  /// The same for a field of kind `json`: as much as the body of a request may have.
  static let longestObject = 65_536

  /// Why a value does not fit the field; nil where it fits.
  ///
  /// Spaces and hyphens are how people type and paste codes; providers read past them. So of `digits` they do not
  /// count, of `text` they may count, and of every other kind, such as a password, each character counts.
  func problem(with value: InputValue) -> InputProblem? {
    let refused = { (detail: String) in InputProblem(field: name, reason: .invalidInput, detail: detail) }
    guard case .text(let text) = value else { return refused("\(name) must be a string.") }
    guard text.utf8.count <= (kind == .json ? Self.longestObject : Self.longest) else {
      return refused("\(name) is too long.")
    }
    if kind == .json {
      // A form has no other way to leave it out.
      if text.isEmpty, !isRequired { return nil }
      return JSONText.isObject(text) ? nil : refused("\(name) must be a JSON object.")
    }
    if kind == .choice, !(choices ?? []).contains(where: { $0.value == text }) {
      return refused("\(name) must be one of the choices.")
    }
    guard !text.isEmpty || isRequired else { return nil }
    switch kind {
    case .digits:
      let digits = text.unicodeScalars.filter { !CodeRule.isSeparator($0) }
      guard digits.allSatisfy({ $0.properties.numericType == .decimal }) else {
        return refused("\(name) takes digits only.")
      }
      if let length, digits.count != length { return refused("\(name) takes \(length) digits.") }
      return nil
    case .phone where !text.unicodeScalars.contains { $0.properties.numericType == .decimal }:
      return refused("\(name) must be a phone number.")
    case .email where !Self.hasFormOfAddress(text): return refused("\(name) must be an email address.")
    case .text:
      let bare = String(String.UnicodeScalarView(text.unicodeScalars.filter { !CodeRule.isSeparator($0) }))
      if let length, text.count != length, bare.count != length {
        return refused("\(name) takes \(length) characters.")
      }
      return nil
    default: break
    }
    if let length, text.count != length { return refused("\(name) takes \(length) characters.") }
    return nil
  }
}

extension InputField {
  /// Something, an @ and something, without spaces and control characters. Whether mail arrives there, only a message
  /// tells.
  private static func hasFormOfAddress(_ text: String) -> Bool {
    let trimmed = text.trimmingPrefix { $0.isWhitespace }.reversed().drop { $0.isWhitespace }
    guard let at = trimmed.firstIndex(of: "@"), at != trimmed.startIndex, trimmed.index(after: at) != trimmed.endIndex
    else { return false }
    return !trimmed.contains {
      $0.isWhitespace || $0.isNewline || $0.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }
  }
}

extension ProviderInput {
  /// The same, with the text of each object that was asked for.
  fileprivate func withText(ofObjects fields: [InputField]) -> ProviderInput {
    var values = self.fields
    for field in fields where field.kind == .json {
      if case .object(let text)? = values[field.name] { values[field.name] = .text(text) }
    }
    return ProviderInput(fields: values, defaultRegion: defaultRegion)
  }
}

extension Shown {
  /// The most bytes that the options of a ceremony may have.
  static let longestOptions = 32_768

  /// Whether the round's fields and what it shows fit together: a ceremony has options that are a JSON object, and one
  /// field that takes its answer.
  static func fit(_ shown: [Shown], _ fields: [InputField]) -> Bool {
    let options = shown.compactMap { if case .ceremony(_, let options) = $0 { options } else { nil } }
    return options.count == fields.count { $0.kind == .json } && options.count <= 1
      && options.allSatisfy { $0.utf8.count <= longestOptions && JSONText.isObject($0) }
  }
}

extension FlowEngine {
  /// What a provider receives of what was sent for an open step.
  ///
  /// Attack: `{"code": "1", "is_admin": true}`: a field that nobody asked for reaches a provider that reads it all the
  /// same.
  /// - Throws: 422 where a field that it asked for is missing. It is not called then.
  func answer(_ input: ProviderInput, to step: StepRecord, by descriptor: ProviderDescriptor, _ request: RequestContext)
    throws(FlowError)
    -> ProviderInput
  {
    let asked = step.asked(descriptor)
    if let missing = asked.first(where: { $0.isRequired && input.fields[$0.name] == nil }) {
      throw request.refusal(
        InputProblem(field: missing.name, reason: .invalidInput, detail: "\(missing.name) is missing."))
    }
    return input.only(asked.map(\.name)).withText(ofObjects: asked)
  }

  /// Refuses values that do not fit the fields that were asked for. The provider's own `check` comes first: it says
  /// more precisely what is wrong.
  func demandFit(
    _ input: ProviderInput, to step: StepRecord, by descriptor: ProviderDescriptor, _ request: RequestContext
  ) throws(FlowError) {
    try demandFit(input, to: step.asked(descriptor), request)
  }

  /// The same of the fields with which a step is begun. What names a person the provider has read already, and said
  /// more precisely what is wrong with it.
  ///
  /// Attack: `{"word": …}` of a megabyte or of the wrong type for a provider whose `begin` expects a short text.
  func demandBeginning(_ input: ProviderInput, by descriptor: ProviderDescriptor, _ request: RequestContext)
    throws(FlowError)
  {
    let fields = descriptor.beginFields
    // Whom a step is for may be known without being named.
    if let missing = fields.first(where: {
      $0.isRequired && ![.phone, .email, .region].contains($0.kind) && input.fields[$0.name] == nil
    }) {
      throw request.refusal(
        InputProblem(field: missing.name, reason: .invalidInput, detail: "\(missing.name) is missing."))
    }
    try demandFit(input, to: fields, request)
  }

  private func demandFit(_ input: ProviderInput, to fields: [InputField], _ request: RequestContext) throws(FlowError) {
    for field in fields {
      guard let value = input.fields[field.name], let problem = field.problem(with: value) else { continue }
      throw request.refusal(problem)
    }
  }

  /// What a provider asks for can be asked for. Otherwise the provider is at fault: 503, logged, and the try is given
  /// back.
  func demandAskable(
    _ fields: [InputField], showing shown: [Shown], by provider: ProviderName, _ request: RequestContext
  ) throws(FlowError) {
    if !InputField.mistakes(inRound: fields).isEmpty {
      // Not what is wrong with them: their names could be anything.
      throw flaw(
        "a provider asks for a field twice, for a field without a proper name, or for more than 16 fields",
        of: provider, request)
    }
    if Shown.fit(shown, fields) { return }
    throw flaw(
      "a provider shows a ceremony without options or without its one field of kind json, or asks for such a field without a ceremony",
      of: provider, request)
  }

  // MARK: - Refusals that are not counted

  /// How many refusals of a provider are not counted, per identifier and day.
  static let mostUncounted = 20

  /// Whether a refusal that its provider declares as no failure is given back.
  ///
  /// Attack: a provider declares the refusal of a wrong answer as one that is not counted, by mistake, and its secret
  /// can be guessed without end. So of such refusals only the first are given back, for each account, or else
  /// identifier, or else flow.
  func isGivenBack(_ step: StepRecord, _ policy: ProviderPolicy, _ record: FlowRecord, _ request: RequestContext)
    async throws(FlowError) -> Bool
  {
    let subject = subject(of: step, policy, record, request)
    let key = [LimitKey.account, .identifier, .flow].first { subject.value(of: $0) != nil } ?? .flow
    let counted =
      ["uncounted", policy.provider.rawValue, key.rawValue].map { Array($0.utf8) } + [subject.value(of: key) ?? []]
    let limit = ResolvedLimit(
      provider: policy.provider, name: "uncounted", key: key, counter: keys.counterKey(counted),
      max: Self.mostUncounted, window: .seconds(86_400),
      counts: .all, lock: [], disables: false)
    if case .reserved = try await count(limit, request) { return true }
    request.decided(by: limit, used: limit.max, lockedUntil: nil)
    return false
  }
}
