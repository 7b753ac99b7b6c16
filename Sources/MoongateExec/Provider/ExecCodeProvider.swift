import MoongateSDK

/// A code provider that is another program: it only delivers. The gateway reads whom the code is for, makes it, counts and compares.
struct ExecCodeProvider: CodeProvider {
  let descriptor: ProviderDescriptor
  let program: Program
  /// The gateway's own, for the identifier's kind.
  let reader: any CodeProvider

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try reader.readIdentifier(input) }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    let delivery = Delivery(
      code: code.code, text: code.text, domainBoundLine: code.domainBoundLine, service: code.service, to: WireIdentifier(identifier),
      now: tools.clock.now)
    do throws(ProgramFault) {
      _ = try await program.call(
        .deliver, delivery, secrets: [code.code, code.text, code.domainBoundLine, identifier.value, identifier.display], as: Done.self)
    } catch {
      throw DeliveryFault(reason: "\(error)")
    }
  }
}
