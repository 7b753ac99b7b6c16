import MoongateSDK

// When a flow completes, checks again what it relied on.

extension FlowEngine {
  /// Refuses the flow if the account no longer holds what the flow relied on.
  func demandHeld(_ record: FlowRecord, by account: Account?, _ request: RequestContext) throws(FlowError) {
    guard let account else { return }
    // Attack: a thief begins a change of the phone number before the owner sets a PIN, and completes it afterwards. (A
    // secret that was set in the meantime is not replaced: the transaction requires the record that was checked.)
    let isMade =
      record.purpose.setProvider.map { account.credentials.contains($0) && !keepsSeveral($0, request) } ?? false
    if record.purpose.needsHeldProof, !isMade, let own = request.client.session {
      let authority = self.authority(over: account, request)
      guard (own.session.passed + record.passed).contains(where: authority.authorises) else {
        throw unauthorised(authority, request)
      }
    }
    let isHeld =
      record.basis?.held.allSatisfy { proved in account.identifiers.contains { $0.identifier == proved } } ?? false
    guard isHeld, account.epoch == record.basis?.epoch else { throw request.refusal(.flowExpired) }
  }

  /// Whether the flow resets a secret, or changes or removes an existing one.
  func replacesSecret(of account: Account?, _ record: FlowRecord, _ request: RequestContext) -> Bool {
    guard let account else { return false }
    return record.purpose.isReset
      || record.gathered.records.keys.contains { name in
        let purpose = record.stepPurpose(of: name)
        return account.credentials.contains(name) && purpose != .prove
          && !(purpose == .set && keepsSeveral(name, request))
      }
  }

  /// Whether an account can have several factors of this provider, so that a new one is added to the others.
  func keepsSeveral(_ provider: ProviderName, _ request: RequestContext) -> Bool {
    registry(request).descriptor(provider)?.role.contains(.keepsSeveral) ?? false
  }
}
