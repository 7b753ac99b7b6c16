import MoongateSDK

/// A code provider that is a program. It only delivers; the gateway reads the identifier and creates, counts and
/// compares the code.
struct ExecCodeProvider: CodeProvider {
  let descriptor: ProviderDescriptor
  let program: Program
  /// The gateway's parser for the kind of identifier.
  let reader: any CodeProvider

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try reader.readIdentifier(input) }

  func maintain(with tools: StepTools) async throws { try await program.maintain(with: tools) }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    let delivery = Delivery(
      code: code.code, text: code.text, domainBoundLine: code.domainBoundLine, service: code.service,
      to: WireIdentifier(identifier),
      now: tools.clock.now)
    let secrets = [code.code, code.text, code.domainBoundLine, identifier.value, identifier.display]
    let reply: DeliveryReply
    do throws(ProgramFault) {
      reply = try await program.call(.deliver, delivery, secrets: secrets, granting: tools, as: DeliveryReply.self)
    } catch {
      throw fault(error)
    }
    guard let failed = reply.failed else { return }
    guard let reason = RefusalReason(rawValue: failed), descriptor.deliveryReason(reason) != nil else {
      let broken = ProgramFault.broken(
        "it failed to deliver for \(ProgramFault.undeclaredReason): `\(failed.prefix(48))`")
      program.log.complain("lie", "its answer to `deliver` is not valid: \(broken)")
      throw fault(broken)
    }
    throw DeliveryFault(reason, "it answered `\(reason.rawValue)`")
  }

  private func fault(_ fault: ProgramFault) -> DeliveryFault { DeliveryFault(reason: "\(fault)") }
}
