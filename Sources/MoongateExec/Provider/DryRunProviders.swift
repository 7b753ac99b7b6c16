import MoongateSDK
import Synchronization

// Dry-run replacements of provider programs for tests of a configuration. The program itself would send real codes to
// made-up users.

/// Replaces a code provider program.
private struct DryRunCodeProvider: CodeProvider {
  let descriptor: ProviderDescriptor
  let reader: any CodeProvider
  let messenger: any Messenger

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try reader.readIdentifier(input) }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    let channel: MessageChannel = identifier.kind == .phone ? .sms : .mail
    try await messenger.send(
      Message(channel: channel, to: identifier.value, subject: code.service, text: code.text, code: code.code))
  }
}

/// Replaces a full provider program. Only the program knows the right answer, so no answer is right. A step without
/// fields waits for an approval, which the test case gives.
private final class DryRunFullProvider: FullProvider, DecidedRehearsal {
  let descriptor: ProviderDescriptor
  private let base: ExecFullProvider
  private let decision = Mutex<Bool?>(nil)

  init(descriptor: ProviderDescriptor, base: ExecFullProvider) {
    self.descriptor = descriptor
    self.base = base
  }

  func decide(_ isApproved: Bool) { decision.withLock { $0 = isApproved } }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? { try base.readIdentifier(input) }

  func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) { try base.check(step, input) }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    guard descriptor.asksNothing else { return .ask(descriptor.submitFields, state: []) }
    decision.withLock { $0 = nil }
    return .wait(poll: .seconds(1), state: [])
  }

  /// Records in a dry run always have the current version.
  func upgrade(_ record: [UInt8], from version: Int) async throws -> [UInt8] { record }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    if descriptor.asksNothing {
      let decided = decision.withLock { decision in
        defer { decision = nil }
        return decision
      }
      guard let decided else { return .wait(poll: .seconds(1), state: []) }
      if decided { return .proved(Proof(proved: step.identifier.map { [$0] } ?? [])) }
    }
    guard let outcome = descriptor.outcomes.first(where: \.isFailure) else {
      throw ProgramFault.failed("programs are not called in a dry run")
    }
    return .refused(outcome.reason)
  }
}

// No webhooks arrive in a dry run.
extension DryRunCodeProvider: WebhookReceiver {
  func receive(_ webhook: WebhookRequest, with tools: StepTools) async throws -> WebhookAnswer {
    .refused(.unauthenticated)
  }
}

extension DryRunFullProvider: WebhookReceiver {
  func receive(_ webhook: WebhookRequest, with tools: StepTools) async throws -> WebhookAnswer {
    .refused(.unauthenticated)
  }
}

// Nothing is rechecked in a dry run.
extension DryRunFullProvider: Rechecking {
  func recheck(_ known: RecheckedIdentity, with tools: StepTools) async throws -> RecheckAnswer {
    .confirmed(known.identity)
  }
}

extension ProviderDescriptor {
  /// Whether a step ends with a decision that is made elsewhere.
  fileprivate var asksNothing: Bool { submitFields.isEmpty && !identifierKinds.contains(.federated) }
}

extension ExecCodeProvider: RehearsableProvider {
  func rehearsal(sending messenger: any Messenger) -> any Provider {
    DryRunCodeProvider(descriptor: descriptor, reader: reader, messenger: messenger)
  }
}

extension ExecFullProvider: RehearsableProvider {
  func rehearsal(sending messenger: any Messenger) -> any Provider {
    DryRunFullProvider(descriptor: descriptor, base: self)
  }
}
