import Logging
import MoongateSDK

// What a provider receives of a request: the fields that it asked for, and nothing else.

extension ProviderInput {
  /// The same without the fields that are not named.
  func only(_ names: some Sequence<String>) -> ProviderInput {
    let names = Set(names)
    return ProviderInput(fields: fields.filter { names.contains($0.key) }, defaultRegion: defaultRegion)
  }

  /// The same with the declared fields of a provider only: what it receives where it has not asked for anything in particular yet.
  func declared(by descriptor: ProviderDescriptor) -> ProviderInput {
    only(descriptor.beginFields.map(\.name) + descriptor.submitFields.map(\.name))
  }
}

extension StepRecord {
  /// What its provider has asked for in this round.
  func asked(_ descriptor: ProviderDescriptor) -> [InputField] { fields ?? descriptor.submitFields }
}

extension InputField {
  /// The most bytes of a field's text: more than any secret, identifier or token needs.
  static let longest = 16_384

  /// Why a value does not fit the field; nil where it fits.
  ///
  /// Spaces and hyphens between digits are how people type and paste codes; providers read past them.
  func problem(with value: InputValue) -> InputProblem? {
    let refused = { (detail: String) in InputProblem(field: name, reason: .invalidInput, detail: detail) }
    guard case .text(let text) = value else { return refused("\(name) must be a string.") }
    guard text.utf8.count <= Self.longest else { return refused("\(name) is too long.") }
    guard kind == .digits, !text.isEmpty || isRequired else { return nil }
    let digits = text.unicodeScalars.filter { $0 != " " && $0 != "-" }
    guard digits.allSatisfy({ $0.properties.numericType == .decimal }) else { return refused("\(name) takes digits only.") }
    if let length, digits.count != length { return refused("\(name) takes \(length) digits.") }
    return nil
  }

  /// Whether fields can be asked for: each with a proper name of its own, and no more than a page has place for.
  static func canBeAsked(_ fields: [InputField]) -> Bool {
    let names = fields.map(\.name)
    return names.count <= 16 && Set(names).count == names.count
      && names.allSatisfy { ProviderName(rawValue: $0) != nil && $0 != "code_verifier" }
      && fields.allSatisfy { (1...1_000).contains($0.length ?? 1) }
  }
}

extension FlowEngine {
  /// What a provider receives of what was sent for an open step.
  ///
  /// Attack: `{"code": "1", "is_admin": true}`: a field that nobody asked for reaches a provider that reads it all the same.
  /// - Throws: 422 where a field that it asked for is missing. It is not called then.
  func answer(_ input: ProviderInput, to step: StepRecord, by descriptor: ProviderDescriptor, _ visit: Visit) throws(Halt) -> ProviderInput {
    let asked = step.asked(descriptor)
    // What another site sends back with the person is its own, and the provider's to judge.
    if step.redirectTo == nil, let missing = asked.first(where: { $0.isRequired && input.fields[$0.name] == nil }) {
      throw visit.refusal(InputProblem(field: missing.name, reason: .invalidInput, detail: "\(missing.name) is missing."))
    }
    return input.only(asked.map(\.name) + (step.redirectTo == nil ? [] : Self.callbackFields))
  }

  /// What another site sends back with a person, whatever the provider declared (RFC 6749 section 4.1.2, RFC 9207 section 2).
  private static let callbackFields = ["code", "state", "iss", "error"]

  /// Refuses values that do not fit the fields that were asked for. The provider's own `check` comes first: it says more precisely what is wrong.
  func demandFit(_ input: ProviderInput, to step: StepRecord, by descriptor: ProviderDescriptor, _ visit: Visit) throws(Halt) {
    guard step.redirectTo == nil else { return }
    for field in step.asked(descriptor) {
      guard let value = input.fields[field.name], let problem = field.problem(with: value) else { continue }
      throw visit.refusal(problem)
    }
  }

  /// What a provider asks for can be asked for. Otherwise the provider is at fault: 503, logged, and the try is given back.
  func demandAskable(_ fields: [InputField], by provider: ProviderName, _ visit: Visit) throws(Halt) {
    if InputField.canBeAsked(fields) { return }
    logger.error(
      "a provider asks for a field twice, for a field without a proper name, or for more than 16 fields",
      metadata: ["decision": "\(visit.client.decision)", "provider": "\(provider)"])
    throw visit.refusal(.busy)
  }

  // MARK: - Refusals that are not counted

  /// How many refusals of a provider are not counted, per identifier and day.
  static let mostUncounted = 20

  /// Whether a refusal that its provider declares as no failure is given back.
  ///
  /// Attack: a provider declares the refusal of a wrong answer as one that is not counted, by mistake, and its secret can be guessed without end. So of
  /// such refusals only the first are given back, for each account, or else identifier, or else flow.
  func isGivenBack(_ step: StepRecord, _ policy: ProviderPolicy, _ record: FlowRecord, _ visit: Visit) async throws(Halt) -> Bool {
    let subject = subject(of: step, policy, record, visit)
    let key = [LimitKey.account, .identifier, .flow].first { subject.value(of: $0) != nil } ?? .flow
    let counted = ["uncounted", policy.provider.rawValue, key.rawValue].map { Array($0.utf8) } + [subject.value(of: key) ?? []]
    let limit = ResolvedLimit(
      provider: policy.provider, name: "uncounted", key: key, counter: keys.counterKey(counted), max: Self.mostUncounted, window: .seconds(86_400),
      counts: .all, lock: [], disables: false)
    let request = ReservationRequest(
      id: ReservationID(from: random), now: max(visit.now, clock.now()), limits: [limit], timer: nil, isSettled: true)
    if case .reserved = try await asking({ () async throws(StoreFault) in try await store.reserve(request) }) { return true }
    visit.decided(by: limit, used: limit.max, lockedUntil: nil)
    return false
  }
}
