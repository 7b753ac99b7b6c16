import MoongateSDK

/// Verifies a secret phrase that the account has chosen. The gateway counts the attempts, stores the record encrypted,
/// and provides the hashing.
public struct NewProvider: FullProvider {
  private static let phrase = InputField(name: "phrase", kind: .password)

  public let descriptor = ProviderDescriptor(
    name: "new_provider", beginFields: [], submitFields: [phrase], settings: [],
    policy: PolicySource(file: "Sources/NewProvider/Resources/policy.lua", bytes: PackageResources.policy_lua),
    flows: [
      PolicySource(
        file: "Sources/NewProvider/Resources/new_provider_set.lua", bytes: PackageResources.new_provider_set_lua),
      PolicySource(
        file: "Sources/NewProvider/Resources/new_provider_disable.lua", bytes: PackageResources.new_provider_disable_lua
      ),
    ],
    cases: PolicySource(file: "Sources/NewProvider/Resources/cases.lua", bytes: PackageResources.cases_lua),
    identifierKinds: [], hashesSecrets: true,
    outcomes: [
      Outcome("wrong_phrase", "This is not your phrase. Try again."),
      // These outcomes reveal nothing about a secret, so the attempt is refunded.
      Outcome("no_match", "The two phrases differ. Choose one again.", isFailure: false),
      Outcome("no_phrase", "You have not chosen a phrase yet.", isFailure: false),
      Outcome(.alreadySet, "You have chosen a phrase already.", isFailure: false),
    ],
    facts: [FactField(name: "words", kind: .number, help: "How many words the phrase has.")],
    words: StepWords(
      title: "New provider", instruction: "Type your secret phrase.", labels: ["phrase": "Phrase"],
      links: [.set: "Choose a secret phrase"],
      translations: [(tag: "hi", file: PackageResources.hi_words)]),
    role: .keepsFactor)

  public init() {}

  /// Refuses malformed input with status 422, without counting an attempt.
  public func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
    let typed = try input.text(Self.phrase.name)
    guard typed.count >= 12 else {
      throw InputProblem(field: Self.phrase.name, reason: .invalidInput, detail: "A phrase has at least 12 characters.")
    }
  }

  /// Opens the step. The purpose is `set` in the flow new_provider_set, `disable` in new_provider_disable, and `prove`
  /// elsewhere.
  public func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    Self.obstacle(step) ?? .ask([Self.phrase], state: [])
  }

  /// Verifies a phrase. Return a refusal as a value. A thrown error is a fault: status 503, not counted, and never a
  /// success.
  public func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    guard let hasher = step.tools.hasher else { throw Fault.noHasher }
    let phrase = try input.text(Self.phrase.name)
    let typed = Array(phrase.utf8)
    if let obstacle = Self.obstacle(step) { return obstacle }
    if step.purpose == .set { return try await choose(step, typed, hasher) }
    // Do the same work without an account, so that the response time does not reveal registered users.
    let hash = step.account?.record.map { String(decoding: $0, as: UTF8.self) }
    guard case .right(let rehashed) = try await hasher.verify(typed, against: hash) else {
      return .refused("wrong_phrase")
    }
    if step.purpose == .disable { return .proved(Proof(record: .remove)) }
    let words = phrase.split { $0.isWhitespace }.count
    return .proved(Proof(facts: ["words": "\(words)"], record: rehashed.map { .replace(Array($0.utf8)) } ?? .keep))
  }

  /// Uses two rounds: the first keeps a hash of the phrase in the state, which the gateway encrypts; the second
  /// compares the phrase with it.
  private func choose(_ step: StepContext, _ typed: [UInt8], _ hasher: any SecretHasher) async throws -> StepAnswer {
    if step.state.isEmpty {
      let hash = Array(try await hasher.hash(typed).utf8)
      return .ask([Self.phrase], state: hash, showing: [.text("Type the phrase once more.")])
    }
    guard case .right = try await hasher.verify(typed, against: String(decoding: step.state, as: UTF8.self)) else {
      return .refused("no_match", then: .ask([Self.phrase], state: []))
    }
    // If two flows choose a phrase at once, only one completes.
    return .proved(Proof(record: .replaceOnce(step.state)))
  }

  /// Why the step is not possible, regardless of the input.
  private static func obstacle(_ step: StepContext) -> StepAnswer? {
    let hasPhrase = step.account?.record != nil
    if step.purpose != .set { return step.account != nil && !hasPhrase ? .refused("no_phrase") : nil }
    // Attack: someone uses an open session to choose another phrase. In a reset, another factor was verified first.
    return hasPhrase && step.flowPurpose != .reset ? .refused(.alreadySet) : nil
  }

  enum Fault: Error { case noHasher }
}
