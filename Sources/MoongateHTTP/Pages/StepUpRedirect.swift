import MoongateCore

/// Redirects a user to the proof that a change of the account needs, and back to the change.
enum StepUpRedirect {
  /// The value of `for=` in the address of `/auth/step`. The page then offers only providers that authorize a change.
  static let purpose = "change"

  /// The address of the step-up page; nil if the refusal does not ask for a proof.
  /// - Parameter page: the page to return to.
  static func address(after refusal: Refusal?, backTo page: String) -> String? {
    guard let refusal, refusal.code == .stepUpRequired else { return nil }
    return address(of: refusal.flow ?? FlowPurpose.stepUp.usualName, backTo: page)
  }

  /// The page on which the user chooses a provider that authorizes a change.
  static func address(of flow: String, backTo page: String?) -> String {
    FormFields.address(PagePath.step, ["flow": flow, "return_to": page, "for": purpose])
  }
}

extension FlowDriver {
  /// Why a change cannot begin now, so that its page shows this before anything is typed; nil if it can.
  func refusal(ofChange flow: String, _ exchange: Exchange) async throws(Refusal) -> Refusal? {
    guard exchange.generation.purpose(of: flow).needsHeldProof else { return nil }
    guard case .failure(let refusal) = await engine.offers(flow, client: try await caller(exchange)) else { return nil }
    return [.stepUpRequired, .identifierTooNew].contains(refusal.code) ? refusal : nil
  }
}
