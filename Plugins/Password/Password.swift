import MoongateSDK

/// Proves a password beside an email address, and lets a person choose one at registration and after a code.
///
/// It owns what a password is and which ones are too weak. What a step is for comes from the core (`StepPurpose`), and
/// so does the account; counters, locks and the threads on which hashing is done are the core's.
public struct Password: FullProvider {
  /// What it declares: `begin` takes `email`, and where a person registers `first_name` and `last_name`; `submit` takes
  /// `password`.
  public let descriptor: ProviderDescriptor

  /// What its words are in other languages; each is a file of `words/`.
  private static let translations: [(tag: String, file: [UInt8])] = [
    ("hi", PackageResources.hi_words), ("ar", PackageResources.ar_words), ("bn", PackageResources.bn_words),
    ("de", PackageResources.de_words),
    ("es", PackageResources.es_words), ("fr", PackageResources.fr_words), ("pt", PackageResources.pt_words),
    ("ta", PackageResources.ta_words),
    ("te", PackageResources.te_words),
  ]

  private static let password = InputField(name: "password", kind: .password)

  public init() {
    descriptor = ProviderDescriptor(
      name: "password",
      // None is required of every flow: after a code, or in a session, it is known whose password is meant.
      beginFields: [
        InputField(name: "email", kind: .email, isRequired: false),
        InputField(name: "first_name", kind: .text, isRequired: false),
        InputField(name: "last_name", kind: .text, isRequired: false),
      ],
      submitFields: [Self.password], settings: [],
      policy: PolicySource(file: "Plugins/Password/policy.lua", bytes: PackageResources.policy_lua),
      identifierKinds: [.email], hashesSecrets: true,
      outcomes: [
        Outcome(.invalidPassword, "Incorrect email or password."),
        Outcome(.alreadySet, "There is a password already.", isFailure: false),
      ], facts: [.emailDomain],
      words: StepWords(
        title: "Your password", name: "Password",
        labels: [
          "email": "Email address", "password": "Password", "first_name": "First name", "last_name": "Last name",
        ],
        notices: [
          .set: FactorNotice(subject: "Password changed", event: "The password of your account was changed"),
          .change: FactorNotice(subject: "Password changed", event: "The password of your account was changed"),
        ], translations: Self.translations),
      presentation: .form, entrance: .field(kind: .email, priority: 100), role: [.provesIdentifier, .keepsFactor])
  }

  /// The address, where one is named; else the flow's own account is meant.
  public func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? {
    try input.optionalText("email") == nil ? nil : try input.email()
  }

  /// Whether a password was sent, and a new one is none that is guessed first.
  public func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
    let person = try person(step, input)
    let typed = try TypedPassword(try input.text(Self.password.name), field: Self.password.name)
    guard step.purpose == .set else { return }
    let emails = ([step.identifier].compactMap(\.self) + (step.account?.identifiers ?? [])).filter { $0.kind == .email }
      .map(\.value)
    if let sentence = WeakPassword.sentence(typed, emails: emails, names: person.names + (step.account?.names ?? [])) {
      throw InputProblem(field: Self.password.name, reason: .weakPassword, detail: sentence)
    }
  }

  /// Opens the step; the same for addresses that nobody has.
  public func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    if Self.isSetAgain(step) { return .refused(.alreadySet) }
    do throws(InputProblem) {
      return .ask([Self.password], state: try person(step, input).state)
    } catch {
      return .malformed(error)
    }
  }

  /// Compares, or makes the record of a new one. Without an account, or for one without a password, the same work is
  /// done for nothing.
  public func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    do throws(InputProblem) { try check(step, input) } catch { return .malformed(error) }
    if Self.isSetAgain(step) { return .refused(.alreadySet) }
    guard let hasher = step.tools.hasher else { throw PasswordFault.noHasher }
    let typed = try TypedPassword(try input.text(Self.password.name), field: Self.password.name)
    switch step.purpose {
    case .set:
      let person = try person(step, input)
      let record = try await hasher.hash(typed.bytes)
      // Attack: two resets that were begun at once, each with a password of its own. Of all that were judged by one
      // record, one completes.
      return .proved(
        Proof(
          claimed: [step.identifier].compactMap(\.self), firstName: person.first, lastName: person.last,
          record: .replaceOnce(Array(record.utf8))))
    case .prove:
      guard case .right(let rehashed) = try await hasher.verify(typed.bytes, against: try Self.hash(of: step.account))
      else {
        return .refused(.invalidPassword)
      }
      return .proved(Proof(record: rehashed.map { .replace(Array($0.utf8)) } ?? .keep))
    case .change, .disable: throw PasswordFault.noSuchPurpose
    }
  }

  /// Who registers. Elsewhere nobody is asked for names.
  private func person(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) -> Person {
    // Attack: after a code it is known whom it is about, or, where nobody has the address, it is not: whoever is told
    // then that an email is missing has learned that.
    let registers = step.flowPurpose == .register
    guard step.identifier != nil || step.account != nil || (step.purpose == .set && !registers) else {
      throw InputProblem(field: "email", reason: .invalidInput, detail: "email is missing.")
    }
    guard step.purpose == .set, registers else { return Person() }
    if let kept = Person(state: step.state) { return kept }
    return Person(first: try Person.name("first_name", in: input), last: try Person.name("last_name", in: input))
  }

  /// Attack: a session that was left open makes itself another password. A flow that resets the password has verified
  /// the address first; a flow that sets one has not asked for the current password.
  private static func isSetAgain(_ step: StepContext) -> Bool {
    step.purpose == .set && step.flowPurpose == .set && step.account?.record != nil
  }

  private static func hash(of account: StepAccount?) throws -> String? {
    guard let record = account?.record else { return nil }
    guard let hash = String(validating: record, as: UTF8.self) else { throw PasswordFault.unreadableRecord }
    return hash
  }
}

extension Password: SecretImporting {
  /// All that the gateway can verify.
  public var importedHashes: Set<SecretHashKind> { [.argon2, .bcrypt] }

  public func record(importing hash: String) -> [UInt8] { Array(hash.utf8) }

  public func hash(exporting record: [UInt8]) -> String? { String(validating: record, as: UTF8.self) }
}

/// A mistake of the program, not of the person.
enum PasswordFault: Error {
  case noHasher, noSuchPurpose, unreadableRecord
}
