import MoongateCore

/// Leads a person to the proof that a change of the account needs, and back to the change.
enum ChangeProof {
  /// The value of `for=` in the address of `/auth/step`: only what authorises a change is offered there.
  static let purpose = "change"

  /// Where the person proves it; nil where the refusal asks for nothing of the kind.
  /// - Parameter page: where the change goes on.
  static func address(after refusal: Refusal?, backTo page: String) -> String? {
    guard let refusal, refusal.code == .stepUpRequired else { return nil }
    return address(of: refusal.flow ?? "step_up", backTo: page)
  }

  /// The page on which the person chooses among what authorises a change.
  static func address(of flow: String, backTo page: String?) -> String {
    FormFields.address("/auth/step", ["flow": flow, "return_to": page, "for": purpose])
  }
}

extension FlowDriver {
  /// Why a change cannot begin now: its page says so before anything is typed.
  func refusal(ofChange flow: String, _ exchange: Exchange) async throws(Refusal) -> Refusal? {
    guard exchange.generation.purpose(of: flow).needsHeldProof else { return nil }
    guard case .failure(let refusal) = await engine.offers(flow, client: try await caller(exchange)) else { return nil }
    return [.stepUpRequired, .identifierTooNew].contains(refusal.code) ? refusal : nil
  }
}
