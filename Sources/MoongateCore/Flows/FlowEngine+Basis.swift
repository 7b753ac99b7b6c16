import MoongateSDK

// What a flow relied on, judged again when it completes.

extension FlowEngine {
  /// What the flow relied on must still be the account's.
  func demandHeld(_ record: FlowRecord, by account: Account?, _ request: RequestContext) throws(FlowError) {
    guard let account else { return }
    // Attack: the thief's change of the number was begun before the owner made a PIN, and is completed after it.
    // (A secret that has been made meanwhile is not replaced: the transaction demands the record that was judged.)
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

  /// Whether the flow resets a secret, or changes or removes one that the account has.
  func replacesSecret(of account: Account?, _ record: FlowRecord, _ request: RequestContext) -> Bool {
    guard let account else { return false }
    return record.purpose.isReset
      || record.gathered.records.keys.contains { name in
        let purpose = record.stepPurpose(of: name)
        return account.credentials.contains(name) && purpose != .prove
          && !(purpose == .set && keepsSeveral(name, request))
      }
  }

  /// Whether the provider adds a factor to those of its kind that an account has.
  func keepsSeveral(_ provider: ProviderName, _ request: RequestContext) -> Bool {
    registry(request).descriptor(provider)?.role.contains(.keepsSeveral) ?? false
  }
}
