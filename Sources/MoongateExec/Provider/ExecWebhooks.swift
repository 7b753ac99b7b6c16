import MoongateSDK

// Webhooks for provider programs of any shape.

extension Program {
  /// Passes a webhook request to the program.
  func receive(_ webhook: WebhookRequest, with tools: StepTools) async throws(ProgramFault) -> WebhookAnswer {
    let call = HookCall(webhook, now: tools.clock.now)
    do throws(ProgramFault) {
      let secrets = [call.body, call.bodyBase64].compactMap(\.self).filter { !$0.isEmpty }
      return try await self.call(.hook, call, secrets: secrets, granting: tools, as: HookReply.self).answer
    } catch .tooLong {
      // A short body can be long when encoded, for example control characters.
      return .refused(.tooLarge)
    }
  }
}

extension ExecFullProvider: WebhookReceiver {
  func receive(_ webhook: WebhookRequest, with tools: StepTools) async throws -> WebhookAnswer {
    try await program.receive(webhook, with: tools)
  }
}

extension ExecCodeProvider: WebhookReceiver {
  func receive(_ webhook: WebhookRequest, with tools: StepTools) async throws -> WebhookAnswer {
    try await program.receive(webhook, with: tools)
  }
}
