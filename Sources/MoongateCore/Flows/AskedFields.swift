import MoongateSDK

// Filters what a provider receives of a request: only the fields that it asked for.

extension ProviderInput {
  /// A copy with only the named fields.
  func only(_ names: some Sequence<String>) -> ProviderInput {
    let names = Set(names)
    return ProviderInput(fields: fields.filter { names.contains($0.key) }, defaultRegion: defaultRegion)
  }

  /// A copy with only the fields that the provider declares. Used before the provider has asked for specific fields.
  func declared(by descriptor: ProviderDescriptor) -> ProviderInput {
    let fields = descriptor.beginFields + descriptor.submitFields
    return only(fields.map(\.name)).withDigits(of: fields)
  }
}

extension StepRecord {
  /// The fields that the provider asked for in this round.
  ///
  /// After a redirect, these are the fields that the other site may send back. The submit fields are then optional:
  /// native apps use them to send a grant that they obtained themselves.
  func asked(_ descriptor: ProviderDescriptor) -> [InputField] {
    guard redirectTo != nil else { return fields ?? descriptor.submitFields }
    let returned = descriptor.callbackFields
    let others = descriptor.submitFields.filter { field in !returned.contains { $0.name == field.name } }
    return returned + others.map { InputField(name: $0.name, kind: $0.kind, length: $0.length, isRequired: false) }
  }
}

extension InputField {
  /// The maximum length of a field's text, in bytes. Longer than any secret, identifier or token needs.
  static let longest = 16_384
  /// The maximum length of a `json` field, in bytes: as much as a request body may have.
  static let longestObject = 65_536

  /// Checks a value against the field's kind and length.
  ///
  /// People type and paste codes with spaces, dashes and invisible characters, which mean nothing (`TypedCode`). They
  /// are therefore not counted in `digits`, counted or ignored in `text`, and counted in every other kind, such as a
  /// password.
  /// - Returns: the problem, or nil if the value fits.
  func problem(with value: InputValue) -> InputProblem? {
    let refused = { (detail: String) in InputProblem(field: name, reason: .invalidInput, detail: detail) }
    guard case .text(let text) = value else { return refused("\(name) must be a string.") }
    guard text.utf8.count <= (kind == .json ? Self.longestObject : Self.longest) else {
      return refused("\(name) is too long.")
    }
    if kind == .json {
      // A form can only send an optional field as empty text.
      if text.isEmpty, !isRequired { return nil }
      return JSONText.isObject(text) ? nil : refused("\(name) must be a JSON object.")
    }
    if kind == .choice, !(choices ?? []).contains(where: { $0.value == text }) {
      return refused("\(name) must be one of the choices.")
    }
    guard !text.isEmpty || isRequired else { return nil }
    switch kind {
    case .digits:
      guard let digits = TypedCode(text).digits else { return refused("\(name) takes digits only.") }
      if let length, digits.utf8.count != length { return refused("\(name) takes \(length) digits.") }
      return nil
    case .phone where !text.unicodeScalars.contains { $0.properties.numericType == .decimal }:
      return refused("\(name) must be a phone number.")
    case .email where !Self.hasFormOfAddress(text): return refused("\(name) must be an email address.")
    case .text:
      if let length, text.count != length, TypedCode(text).text.count != length {
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
  /// Whether the text has the form `local@domain` without whitespace or control characters. Whether mail arrives there
  /// is not checked.
  private static func hasFormOfAddress(_ text: String) -> Bool {
    let trimmed = EmailAddress.trimmed(text)
    guard let at = trimmed.firstIndex(of: "@"), at != trimmed.startIndex, trimmed.index(after: at) != trimmed.endIndex
    else { return false }
    return !trimmed.contains { $0.properties.isWhitespace || $0.properties.generalCategory == .control }
  }
}

extension ProviderInput {
  /// A copy in which the values of the `digits` fields are ASCII digits (`TypedCode`). A value with anything else stays
  /// as it was typed, and is refused when the fields are checked.
  func withDigits(of fields: [InputField]) -> ProviderInput {
    var values = self.fields
    for field in fields where field.kind == .digits {
      guard case .text(let text)? = values[field.name], text.utf8.count <= InputField.longest else { continue }
      if let digits = TypedCode(text).digits { values[field.name] = .text(digits) }
    }
    return ProviderInput(fields: values, defaultRegion: defaultRegion)
  }

  /// A copy in which the object fields that were asked for are converted to text.
  fileprivate func withText(ofObjects fields: [InputField]) -> ProviderInput {
    var values = self.fields
    for field in fields where field.kind == .json {
      if case .object(let text)? = values[field.name] { values[field.name] = .text(text) }
    }
    return ProviderInput(fields: values, defaultRegion: defaultRegion)
  }
}

extension Shown {
  /// The maximum size of a ceremony's options, in bytes.
  static let longestOptions = 32_768

  /// Whether the fields of a round match what it shows. A ceremony needs options that are a JSON object and exactly one
  /// `json` field for its answer.
  static func fit(_ shown: [Shown], _ fields: [InputField]) -> Bool {
    let options = shown.compactMap { if case .ceremony(_, let options) = $0 { options } else { nil } }
    return options.count == fields.count { $0.kind == .json } && options.count <= 1
      && options.allSatisfy { $0.utf8.count <= longestOptions && JSONText.isObject($0) }
  }
}

extension ProviderCalls {
  /// The part of a submitted input that the provider of the open step receives.
  ///
  /// Attack: `{"code": "1", "is_admin": true}`: an extra field reaches a provider that reads it although it never asked
  /// for it.
  /// - Throws: 422 if a required field is missing. The provider is not called then.
  func answer(_ input: ProviderInput, to step: StepRecord, by descriptor: ProviderDescriptor, _ request: RequestContext)
    throws(FlowError)
    -> ProviderInput
  {
    let asked = step.asked(descriptor)
    if let missing = asked.first(where: { $0.isRequired && input.fields[$0.name] == nil }) {
      throw request.refusal(
        InputProblem(field: missing.name, reason: .invalidInput, detail: "\(missing.name) is missing."))
    }
    return input.only(asked.map(\.name)).withDigits(of: asked).withText(ofObjects: asked)
  }

  /// Refuses values that do not fit the fields that were asked for. Call the provider's own `check` first: its messages
  /// are more specific.
  func demandFit(
    _ input: ProviderInput, to step: StepRecord, by descriptor: ProviderDescriptor, _ request: RequestContext
  ) throws(FlowError) {
    try demandFit(input, to: step.asked(descriptor), request)
  }

  /// Refuses values that do not fit the fields that begin a step. The provider has already read the identifier fields
  /// and reports their problems itself.
  ///
  /// Attack: `{"word": …}` of a megabyte or of the wrong type for a provider whose `begin` expects a short text.
  func demandBeginning(_ input: ProviderInput, by descriptor: ProviderDescriptor, _ request: RequestContext)
    throws(FlowError)
  {
    let fields = descriptor.beginFields
    // The recipient may be known without being sent, so identifier fields may be missing.
    if let missing = fields.first(where: {
      $0.isRequired && $0.identifierKind == nil && $0.kind != .region && input.fields[$0.name] == nil
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
}
