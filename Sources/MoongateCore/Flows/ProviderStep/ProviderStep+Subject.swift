import Foundation
import MoongateSDK

// Finds the account that an attempt or a proof belongs to.

extension ProviderStep {
  /// The step with the account that the answer names, if nothing has identified the account before.
  ///
  /// Any client can send any user handle, so it grants nothing. It only selects the record that the answer is checked
  /// against and the limits that count the attempt. If the account does not exist or has no credential of the provider,
  /// the answer is checked without a record and refused as a wrong answer.
  ///
  /// Attack: an answer of the attacker's own credential with the victim's user handle. It is checked against the
  /// victim's record, which does not contain the credential.
  func identified(_ attempt: ProviderAttempt, _ flow: FlowTransaction) async throws(FlowError) -> StepRecord {
    let (step, record, descriptor) = (attempt.step, flow.record, attempt.provider.descriptor)
    guard descriptor.role.contains(.findsAccount), record.account == nil, step.account == nil,
      record.stepPurpose(of: descriptor.name) == .prove,
      let field = step.asked(descriptor).first(where: { $0.kind == .json }),
      case .text(let answer)? = attempt.input.fields[field.name],
      let id = CeremonyAnswer.userHandle(in: answer), let account = try await lookup.loadAccount(id, flow),
      account.credentials.contains(descriptor.name)
    else { return step }
    return step.about(AccountVersion(account))
  }

  /// The account that a proof belongs to; nil if no account has the identity yet.
  ///
  /// Attack: an identity of the attacker's own, proved in someone else's flow. If the account is known, the proved
  /// identity must belong to it. An identity without an account is joined to one only by an address that both have
  /// verified.
  func subject(of proof: Proof, _ step: StepRecord, _ flow: FlowTransaction) async throws(FlowError) -> ProofSubject {
    let (record, request) = (flow.record, flow.request)
    if record.purpose.connectsSite,
      registry(request).descriptor(step.provider)?.identifierKinds.contains(.federated) ?? false
    {
      return try await connected(by: proof, of: step.provider, flow)
    }
    var holders: [(identifier: Identifier, account: Account)] = []
    for identifier in proof.proved {
      if let holder = try await lookup.holder(of: identifier, flow) { holders.append((identifier, holder)) }
    }
    if let known = record.account ?? step.account {
      guard proof.proved.isEmpty || (!holders.isEmpty && holders.allSatisfy { $0.account.id == known }) else {
        throw request.refusal(.denied, because: .foreignIdentifier)
      }
      guard let epoch = record.account == nil ? step.epoch : record.basis.epoch else {
        throw request.refusal(.flowExpired, because: .accountChanged)
      }
      return ProofSubject(account: AccountVersion(id: known, epoch: epoch), held: holders.map(\.identifier))
    }
    let signingIn = holders.filter { !$0.account.isWaiting($0.identifier, at: request.now) }
    if let first = signingIn.first?.account {
      return ProofSubject(
        account: AccountVersion(first), held: signingIn.filter { $0.account.id == first.id }.map(\.identifier))
    }
    let confirmed = try await confirmation(of: proof, step, flow)
    // An identity that still waits leads to its account as before it was joined: by another proof of the account.
    // Without one, it is refused when the flow completes.
    if let waiting = holders.first, confirmed.account?.id != waiting.account.id {
      return ProofSubject(
        account: AccountVersion(waiting.account),
        held: holders.filter { $0.account.id == waiting.account.id }.map(\.identifier))
    }
    return confirmed
  }

  /// The account of a flow that connects another site. The identity must be new to the account, and does not count as a
  /// factor.
  ///
  /// Attack: an identity of another account is connected with the thief's, to take that account over or to make it
  /// disappear. The identity stays where it is.
  private func connected(by proof: Proof, of provider: ProviderName, _ flow: FlowTransaction) async throws(FlowError)
    -> ProofSubject
  {
    let request = flow.request
    guard let identity = proof.proved.first, let own = try await lookup.loadOwn(flow) else {
      throw request.refusal(.denied)
    }
    if let holder = try await lookup.holder(of: identity, flow), holder.id != own.id {
      throw request.refusal(
        .alreadyRegistered, detail: "This identity belongs to another account here. Nothing was changed.")
    }
    try demandUnconnected(provider, own, request)
    return ProofSubject(account: AccountVersion(own))
  }

  /// An account has at most one identity at a site: with a second one, someone else could sign in unnoticed.
  func demandUnconnected(_ provider: ProviderName, _ account: Account, _ request: RequestContext)
    throws(FlowError)
  {
    guard checks.isConnected(to: provider, account, request) else { return }
    throw request.refusal(.alreadySet, detail: "This site is already connected. Disconnect it first.")
  }

  /// Handles an identity without an account whose address another site has verified once but does not vouch for today.
  /// If an account holds that address, the flow asks for that account's own proof next, and joins the identity only
  /// after that.
  ///
  /// Attack: a former employee still has the account at the other site that was made with the company's address, and
  /// gets into the account of the address's current owner.
  private func confirmation(of proof: Proof, _ step: StepRecord, _ flow: FlowTransaction) async throws(FlowError)
    -> ProofSubject
  {
    let request = flow.request
    for identifier in proof.attested {
      guard let account = try await lookup.holder(of: identifier, flow) else { continue }
      let able = registry(request).all.filter { other in
        let descriptor = other.descriptor
        return descriptor.name != step.provider && request.generation.policies[descriptor.name] != nil
          && descriptor.identifierKinds.contains(identifier.kind) && !descriptor.identifierKinds.contains(.federated)
          && checks.isOpen(descriptor.name, to: account, in: .stepUp, request)
      }
      // A code to that very address, or the password that goes with it. Attack: a code to the account's number would
      // show the number to an attacker.
      guard let chosen = able.first(where: { $0 is any CodeProvider }) ?? able.first else {
        throw request.refusal(.alreadyRegistered)
      }
      return ProofSubject(account: AccountVersion(account), confirmedBy: chosen.descriptor.name)
    }
    return ProofSubject()
  }
}

/// The answer of a browser's credential API, reduced to the fields that the core reads.
private struct CeremonyAnswer: Decodable {
  struct Response: Decodable { let userHandle: String? }

  let response: Response

  /// The user handle as text; nil if the answer has none.
  static func userHandle(in text: String) -> String? {
    guard let answer = try? JSONDecoder().decode(Self.self, from: Data(text.utf8)),
      let handle = answer.response.userHandle, handle.utf8.count <= 128,
      let bytes = Base64URL.decode(handle)
    else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }
}
