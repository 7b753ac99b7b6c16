import MoongateSDK

// What an account's own flows demand: a live session, and proof that is fresh enough.

extension FlowEngine {
  /// How old the latest proof may be when a PIN is made (exact.md, "The seeds' own calls").
  private static let freshness: Duration = .seconds(600)

  /// An account's own flow is driven by the session that it was begun with, and by no other.
  ///
  /// Attacks: a flow begun with a stolen session, whose steps the owner is led to pass in a session of their own; a flow that outlives
  /// its session.
  func demandOwnSession(_ record: FlowRecord, _ visit: Visit) throws(Halt) {
    guard let started = record.startedIn else { return }
    guard let own = visit.client.session, own.isLive(at: visit.now), own.session.id == started, own.account.id == record.account else {
      throw visit.refusal(.unauthenticated)
    }
  }

  /// A secret is set only by somebody who has proved enough just before.
  ///
  /// Attacks: a stolen session makes the PIN that is missing; a flow that an operator wrote in the wrong order sets a password for whoever asks.
  func demandProof(before purpose: StepPurpose, _ record: FlowRecord, _ visit: Visit) throws(Halt) {
    guard purpose == .set else { return }
    switch record.purpose {
    case .pinSet, .secret(_, .set):
      let passed = record.passed + (visit.client.session?.session.passed ?? [])
      guard let latest = passed.map(\.at).max(), visit.now < latest + Self.freshness else { throw visit.refusal(.stepUpRequired) }
    case .registerEmail: break
    default: guard !record.passed.isEmpty, record.account != nil else { throw visit.refusal(.denied) }
    }
  }

  /// The account that an identifier leads to where nobody has proved to be someone yet: who holds it verified, else, for a secret that is
  /// theirs, the newest that claims it.
  func owner(of identifier: Identifier, claimedWith provider: ProviderName?, _ visit: Visit) async throws(Halt) -> Account? {
    if let holder = try await holder(of: identifier) { return holder }
    guard let provider else { return nil }
    return try await asking { () async throws(StoreFault) in try await store.account(claiming: identifier, having: provider) }
  }

  /// The account that holds the identifier verified.
  func holder(of identifier: Identifier) async throws(Halt) -> Account? {
    try await asking { () async throws(StoreFault) in try await store.account(holding: identifier) }
  }

  /// The account whose forgotten password a code to the address may replace.
  ///
  /// Attack: someone makes an account that they can open otherwise, claims a stranger's address on it, and waits until the stranger recovers
  /// "their" password there. An account that holds something else verified is not given to who proves an address that it only claims.
  func recoverable(by identifier: Identifier, _ visit: Visit) async throws(Halt) -> Account? {
    if let holder = try await holder(of: identifier) { return holder }
    let claimant = try await owner(of: identifier, claimedWith: "password", visit)
    return claimant.flatMap { account in account.identifiers.contains { $0.verifiedAt != nil } ? nil : account }
  }
}
