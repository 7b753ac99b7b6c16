import MoongateSDK

// Who plays a program's part where a configuration is only tried out: the program itself would send real codes to made-up people.

/// In place of a code provider that is a program.
private struct RehearsedCodes: CodeProvider {
  let descriptor: ProviderDescriptor
  let reader: any CodeProvider
  let messenger: any Messenger

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try reader.readIdentifier(input) }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    let channel: MessageChannel = identifier.kind == .phone ? .sms : .mail
    try await messenger.send(Message(channel: channel, to: identifier.value, subject: code.service, text: code.text, code: code.code))
  }
}

/// In place of a full provider that is a program. What is right only the program knows, so nothing is.
private struct RehearsedStep: FullProvider {
  let descriptor: ProviderDescriptor
  let base: ExecFullProvider

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? { try base.readIdentifier(input) }

  func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) { try base.check(step, input) }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { .ask(descriptor.submitFields, state: []) }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    guard let outcome = descriptor.outcomes.first(where: \.isFailure) else {
      throw ProgramFault.failed("it is not asked where a configuration is tried out")
    }
    return .refused(outcome.reason)
  }
}

extension ExecCodeProvider: RehearsableProvider {
  func rehearsal(sending messenger: any Messenger) -> any Provider {
    RehearsedCodes(descriptor: descriptor, reader: reader, messenger: messenger)
  }
}

extension ExecFullProvider: RehearsableProvider {
  func rehearsal(sending messenger: any Messenger) -> any Provider { RehearsedStep(descriptor: descriptor, base: self) }
}
