import MoongateSDK

/// Verifies a six-digit PIN, and lets the user set, change and remove it.
///
/// The provider defines what a PIN is and which PINs are too weak. The core determines the purpose of a step
/// (`StepPurpose`), counts and locks attempts, and provides the threads for hashing.
public struct PIN: FullProvider {
  /// `begin` takes no fields; `submit` takes `pin`, `new_pin` or both, depending on the purpose.
  public let descriptor: ProviderDescriptor

  private static let pin = InputField(name: "pin", kind: .digits, length: PINDigits.length)
  private static let newPIN = InputField(name: "new_pin", kind: .digits, length: PINDigits.length)

  public init() {
    descriptor = ProviderDescriptor(
      name: "pin", beginFields: [],
      // One or both fields, depending on the purpose.
      submitFields: [
        Self.pin, InputField(name: Self.newPIN.name, kind: .digits, length: PINDigits.length, isRequired: false),
      ], settings: [],
      policy: PolicySource(file: "Plugins/PIN/policy.lua", bytes: PackageResources.policy_lua),
      flows: [
        PolicySource(file: "Plugins/PIN/flows/pin_set.lua", bytes: PackageResources.pin_set_lua),
        PolicySource(file: "Plugins/PIN/flows/pin_change.lua", bytes: PackageResources.pin_change_lua),
        PolicySource(file: "Plugins/PIN/flows/pin_disable.lua", bytes: PackageResources.pin_disable_lua),
        PolicySource(file: "Plugins/PIN/flows/pin_reset.lua", bytes: PackageResources.pin_reset_lua),
        PolicySource(file: "Plugins/PIN/flows/pin_unlock.lua", bytes: PackageResources.pin_unlock_lua),
      ],
      cases: PolicySource(file: "Plugins/PIN/cases.lua", bytes: PackageResources.cases_lua),
      identifierKinds: [], hashesSecrets: true, secretSpace: 1_000_000 - WeakPIN.refused,
      outcomes: [
        Outcome(.invalidPIN, "Incorrect passcode"), Outcome(.noPIN, "No passcode is set.", isFailure: false),
        Outcome(.alreadySet, "A passcode is already set. Change it instead.", isFailure: false),
      ],
      words: StepWords(
        title: "Your passcode", name: "Passcode", instruction: "Six digits.",
        labels: ["pin": "Passcode", "new_pin": "New passcode"],
        page: [
          "done_set": "Passcode saved.", "done_change": "Passcode changed.", "done_disable": "Passcode turned off.",
        ],
        notices: [
          .set: FactorNotice(subject: "Passcode set", event: "A passcode was set for your account"),
          .change: FactorNotice(subject: "Passcode changed", event: "The passcode on your account was changed"),
          .disable: FactorNotice(subject: "Passcode turned off", event: "The passcode on your account was turned off"),
        ], translations: PackageResources.translations),
      presentation: .digitPad(count: PINDigits.length, current: Self.pin.name, new: Self.newPIN.name), page: "pin",
      role: .keepsFactor)
  }

  /// The fields for a purpose.
  static func fields(for purpose: StepPurpose) -> [InputField] {
    switch purpose {
    case .prove, .disable: [pin]
    case .set: [newPIN]
    case .change: [pin, newPIN]
    }
  }

  /// Checks that the inputs are PINs and that a new PIN is not weak. Does not look at the current PIN.
  public func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
    for field in Self.fields(for: step.purpose) {
      let digits = try PINDigits(try input.text(field.name), field: field.name)
      guard field.name == Self.newPIN.name else { continue }
      let phones = step.account?.identifiers.filter { $0.kind == .phone }.map(\.value) ?? []
      // The message does not name the rule: otherwise an attacker could learn a user's phone number from the refused
      // PINs.
      guard !WeakPIN.isWeak(digits, phones: phones) else {
        throw InputProblem(
          field: field.name, reason: .weakPIN, detail: "This passcode is too easy to guess. Choose another.")
      }
    }
  }

  /// Opens the step if the account has a PIN to verify, or has none to set.
  public func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    try Self.obstacle(step) ?? .ask(Self.fields(for: step.purpose), state: [])
  }

  /// Verifies the PIN, and creates the new record.
  public func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    do throws(InputProblem) { try check(step, input) } catch { return .malformed(error) }
    guard let hasher = step.tools.hasher else { throw PINFault.noHasher }
    if let obstacle = try Self.obstacle(step) { return obstacle }
    guard step.account != nil else { throw PINFault.noAccount }
    // Attack: two concurrent flows set or change the PIN, and the later one overwrites the earlier one. Of all flows
    // with the same record, only one completes.
    if step.purpose == .set {
      return .proved(Proof(record: .replaceOnce(try await Self.record(of: input, by: hasher))))
    }

    let current = try PINDigits(try input.text(Self.pin.name), field: Self.pin.name)
    let stored = try step.account?.record.map(PINRecord.init(bytes:))
    guard case .right(let rehashed) = try await hasher.verify(current.bytes, against: stored?.hash) else {
      return .refused(.invalidPIN)
    }
    switch step.purpose {
    case .prove: return .proved(Proof(record: rehashed.map { .replace(PINRecord(hash: $0).bytes) } ?? .keep))
    case .disable: return .proved(Proof(record: .remove))
    case .set, .change: return .proved(Proof(record: .replaceOnce(try await Self.record(of: input, by: hasher))))
    }
  }

  /// Why the step is not possible, regardless of the input.
  private static func obstacle(_ step: StepContext) throws -> StepAnswer? {
    let hasPIN = step.account?.record != nil
    switch step.purpose {
    case .prove, .change, .disable: return hasPIN ? nil : .refused(.noPIN)
    // A reset has verified another factor first. All other flows must keep an existing PIN.
    case .set: return hasPIN && step.flowPurpose != .reset ? .refused(.alreadySet) : nil
    }
  }

  private static func record(of input: ProviderInput, by hasher: any SecretHasher) async throws -> [UInt8] {
    let chosen = try PINDigits(try input.text(newPIN.name), field: newPIN.name)
    return PINRecord(hash: try await hasher.hash(chosen.bytes)).bytes
  }
}

/// A mistake of the program, not of the user.
enum PINFault: Error {
  case noHasher, noAccount, unreadableRecord
}
