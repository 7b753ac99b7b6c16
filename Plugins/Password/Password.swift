import MoongateSDK

/// Verifies a password with an email address or a user name, and lets users set one at registration and after a code.
///
/// The provider defines what a password is and which passwords are too weak. The core determines the purpose of a step
/// (`StepPurpose`) and the account, counts and locks attempts, and provides the threads for hashing.
public struct Password: FullProvider {
  /// `begin` takes `email` or `name`, whichever kinds the operator has chosen, and at registration `first_name` and
  /// `last_name`; `submit` takes `password`.
  public let descriptor: ProviderDescriptor

  static let password = InputField(name: "password", kind: .password)

  /// Looks up leaked passwords.
  let leaks: LeakLookups

  public init() { self.init(LeakLookups()) }

  init(_ leaks: LeakLookups) {
    self.leaks = leaks
    descriptor = ProviderDescriptor(
      name: "password",
      // No field is always required: after a code or in a session, the account is already known.
      beginFields: [
        InputField(name: "email", kind: .email, isRequired: false),
        InputField(name: "first_name", kind: .text, isRequired: false),
        InputField(name: "last_name", kind: .text, isRequired: false),
      ],
      submitFields: [Self.password], settings: [LeakSource.setting],
      policy: PolicySource(file: "Plugins/Password/policy.lua", bytes: PackageResources.policy_lua),
      identifierKinds: [.email], choosableKinds: [.email, .name], hashesSecrets: true,
      outcomes: [
        Outcome(.invalidPassword, "Incorrect email or password."),
        Outcome(.alreadySet, "This account already has a password.", isFailure: false),
      ], facts: [.emailDomain],
      words: StepWords(
        title: "Your password", name: "Password",
        labels: [
          "email": "Email address", "name": "User name", "password": "Password", "first_name": "First name",
          "last_name": "Last name",
        ],
        notices: [
          .set: FactorNotice(subject: "Password changed", event: "The password on your account was changed"),
          .change: FactorNotice(subject: "Password changed", event: "The password on your account was changed"),
        ], translations: PackageResources.translations),
      presentation: .form, entrance: .field(kind: .email, priority: 100), role: [.provesIdentifier, .keepsFactor])
  }

  /// The name or the address, if there is one; otherwise the flow's account is used. A form sends an empty text for the
  /// one that was not filled in.
  public func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? {
    let name = try input.optionalText(InputField.userName.name) ?? ""
    let email = try input.optionalText("email")
    if name.isEmpty { return email == nil ? nil : try input.email() }
    guard email?.isEmpty ?? true else {
      throw InputProblem(
        field: InputField.userName.name, reason: .invalidInput, detail: "Please enter a name or an email address.")
    }
    return try input.userName()
  }

  /// Checks that there is a password and that a new one is not weak.
  public func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
    let person = try person(step, input)
    let typed = try TypedPassword(try input.text(Self.password.name), field: Self.password.name)
    guard step.purpose == .set else { return }
    let identifiers = ([step.identifier].compactMap(\.self) + (step.account?.identifiers ?? []))
      .filter { [.email, .name].contains($0.kind) }.map(\.value)
    if let sentence = WeakPassword.sentence(
      typed, identifiers: identifiers, names: person.names + (step.account?.names ?? []))
    {
      throw InputProblem(field: Self.password.name, reason: .weakPassword, detail: sentence)
    }
  }

  /// Opens the step, also for unknown addresses.
  public func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    if Self.isSetAgain(step) { return .refused(.alreadySet) }
    do throws(InputProblem) {
      return .ask([Self.password], state: try person(step, input).state)
    } catch {
      return .malformed(error)
    }
  }

  /// Verifies the password, or creates the record of a new one. Without an account or a password, it does the same
  /// work.
  public func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    do throws(InputProblem) { try check(step, input) } catch { return .malformed(error) }
    if Self.isSetAgain(step) { return .refused(.alreadySet) }
    guard let hasher = step.tools.hasher else { throw PasswordFault.noHasher }
    let typed = try TypedPassword(try input.text(Self.password.name), field: Self.password.name)
    switch step.purpose {
    case .set:
      let person = try person(step, input)
      if let problem = try await unchanged(typed, step, hasher) { return .malformed(problem) }
      let record = try await hasher.hash(typed.bytes)
      // Attack: concurrent resets set different passwords. Of all flows with the same record, only one completes.
      return .proved(
        Proof(
          claimed: [step.identifier].compactMap(\.self), firstName: person.first, lastName: person.last,
          record: .replaceOnce(Array(record.utf8))))
    case .prove: return try await prove(typed, against: try Self.hash(of: step.account), hasher)
    case .change, .disable: throw PasswordFault.noSuchPurpose
    }
  }

  /// Compares every spelling of the password, with or without a stored hash.
  private func prove(_ typed: TypedPassword, against hash: String?, _ hasher: any SecretHasher) async throws
    -> StepAnswer
  {
    for spelling in typed.spellings {
      guard case .right(let rehashed) = try await hasher.verify(spelling, against: hash) else { continue }
      // The gateway's own hash is one of its own spelling, so that every keyboard gives the password from now on. Of
      // hashes that need no renewal, only Argon2 has judged the whole password.
      let isOther = spelling != typed.bytes
      guard rehashed != nil || isOther && hash?.hasPrefix("$argon2") ?? false else {
        return .proved(Proof(record: .keep))
      }
      let record = if let rehashed, !isOther { rehashed } else { try await hasher.hash(typed.bytes) }
      return .proved(Proof(record: .replace(Array(record.utf8))))
    }
    return .refused(.invalidPassword)
  }

  /// Why a new password is refused that is the one to be replaced; nil if it is another.
  ///
  /// Attack: an account whose password must be replaced, because the weak hash of the old system gives it away, sets
  /// the same password again and keeps it.
  private func unchanged(_ typed: TypedPassword, _ step: StepContext, _ hasher: any SecretHasher) async throws
    -> InputProblem?
  {
    guard let account = step.account, account.mustReplace else { return nil }
    let hash = try Self.hash(of: account)
    for spelling in typed.spellings {
      guard case .right = try await hasher.verify(spelling, against: hash) else { continue }
      return InputProblem(
        field: Self.password.name, reason: .weakPassword, detail: "This is your current password. Choose another.")
    }
    return nil
  }

  /// The names of a registering user; empty in other flows.
  private func person(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) -> Person {
    // Attack: in a reset, the account is known only if the address exists. An error about a missing email would reveal
    // that it does not.
    let registers = step.flowPurpose == .register
    guard step.identifier != nil || step.account != nil || (step.purpose == .set && !registers) else {
      let field = step.asked.compactMap(\.identifierKind?.rawValue).first ?? "email"
      throw InputProblem(field: field, reason: .invalidInput, detail: "\(field) is missing.")
    }
    guard step.purpose == .set, registers else { return Person() }
    if let kept = Person(state: step.state) { return kept }
    return Person(first: try Person.name("first_name", in: input), last: try Person.name("last_name", in: input))
  }

  /// Attack: someone uses an open session to set another password. A reset has verified the address first; a flow that
  /// sets a password does not ask for the current one.
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
  /// All hashes that the gateway can verify.
  public var importedHashes: Set<SecretHashKind> { Set(SecretHashKind.allCases) }

  public func record(importing hash: String) -> [UInt8] { Array(hash.utf8) }

  public func hash(exporting record: [UInt8]) -> String? { String(validating: record, as: UTF8.self) }
}

/// A mistake of the program, not of the user.
enum PasswordFault: Error {
  case noHasher, noSuchPurpose, unreadableRecord
}
