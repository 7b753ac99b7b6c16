import MoongateSDK

// The session, or the code for an app, in which a flow ends.

/// What the client of a completed flow receives.
struct FlowEnding: Sendable {
  /// The session, unless an app receives the result.
  var session: Session?
  /// The session's token.
  var secret: SecretText?
  /// The code that the app redeems. It is only in this response and is not stored.
  var code: GrantCode?
  /// Where the user goes.
  var next: String
  /// The new token of the device, if the account trusts it.
  var device: SecretText?
  /// The changes that store the session.
  var changes: [Change] = []
}

extension FlowCompletion {
  /// Makes the session in which the flow ends, or the code for its app.
  /// - Parameter known: the account before the flow; nil if the flow created it.
  func ending(_ flow: FlowTransaction, before known: Account?, _ outcome: AccountOutcome) async throws(FlowError)
    -> FlowEnding
  {
    let (record, request) = (flow.record, flow.request)
    let account = outcome.account
    var ending = FlowEnding(next: destination(record, isNew: outcome.isNew))
    if let grant = record.grant {
      let token = SessionToken(from: random)
      ending.code = GrantCode(
        hash: token.hash, expiresAt: request.now + GrantCode.lifetime, factors: account.credentials)
      ending.next = grant.address(with: token.secret)
    } else if record.isByOperator {
      // Attack: somebody finds an operator's link, and is signed in by it without the account's second factor. The
      // user signs in with the new secret, and meets everything that a sign-in requires.
      return ending
    } else if record.startedIn != nil, let own = request.client.session?.session {
      // Attack: a copy of a session of any age completes a flow by skipping its steps, and gets a new token, which the
      // owner's sign-out does not end. A flow that proved and set nothing leaves the session as it is.
      if flow.hasNoEffect {
        ending.session = own
        return ending
      }
      let (grown, token) = growing(
        own, of: account.id, forgetting: providersWithRemovals(known, account, record.purpose), flow)
      (ending.session, ending.secret) = (grown, token.secret)
      // A device that is trusted already has counters of its own for what it passes in a session, such as the PIN.
      ending.device = keys.extending(request.device, for: account, passed: record.passed.settled)
      ending.changes = [.replaceSession(own.token, by: grown)]
    } else {
      // Every sign-in gets a new token. The old token stops working.
      let old = try await continued(flow, outcome)
      let (made, token) = newSession(of: account.id, flow, id: old?.id)
      (ending.session, ending.secret) = (made, token.secret)
      if let old {
        ending.changes.append(.replaceSession(old.token, by: made))
      } else {
        if let other = request.client.session { ending.changes.append(.endSession(other.session.token)) }
        ending.changes.append(.putSession(made))
      }
    }
    if let trust = trust(by: account, flow) {
      ending.device = trust.token
      ending.changes.append(trust.change)
    }
    return ending
  }

  /// Trusts the device on which the user has just signed in. Only a flow that began without a session does: it has
  /// identified the account by itself, and met everything that accounts.lua requires for a sign-in.
  ///
  /// Attack: someone with a copy of a session completes any flow in it, and their device is trusted for a year. Or they
  /// add an address of their own within it, and sign in by that: what is too new trusts no device.
  /// - Returns: nil if the device is not trusted, or if its token cannot be sealed. The sign-in does not fail for that.
  func trust(by account: Account, _ flow: FlowTransaction) -> DeviceTrust? {
    let (record, request) = (flow.record, flow.request)
    guard record.startedIn == nil, !record.passed.isEmpty, record.passed.allSatisfy({ $0.tooNewUntil == nil }) else {
      return nil
    }
    return keys.trusting(
      request.device, for: account, passed: record.passed.settled, userAgent: request.client.userAgent,
      request.now, random)
  }

  /// The session that a sign-in of the same user continues, with its ID; nil: the sign-in begins another one. Apps
  /// know sessions by their IDs: when one of them asks for a new sign-in (`prompt=login`), the user stays signed in to
  /// the others. Steps, times and the token are those of the new sign-in.
  ///
  /// Attack: a thief has a copy of the session, and by it tokens of apps. The owner resets the password, or changes
  /// anything else that ends sessions, by a sign-in in the same browser. It begins another session, so these tokens
  /// end.
  private func continued(_ flow: FlowTransaction, _ outcome: AccountOutcome) async throws(FlowError) -> Session? {
    guard let own = flow.request.client.session, own.token == nil, own.session.domain == nil,
      own.session.account == outcome.account.id, !outcome.isChange
    else { return nil }
    // It may have ended since the request began, or have been continued by a sign-in in another tab.
    let (token, now) = (own.session.token, flow.request.now)
    let found = try await asking { () async throws(StoreFault) -> Session? in
      if let same = try await store.session(token)?.session { return same }
      return try await store.session(replacing: token, at: now)
    }
    return found.flatMap { $0.account == outcome.account.id && now < $0.deadline ? $0 : nil }
  }

  /// Creates a session.
  /// - Parameter id: nil: a new one.
  func newSession(of account: String, _ flow: FlowTransaction, id: String? = nil) -> (Session, SessionToken) {
    let (record, request) = (flow.record, flow.request)
    let token = SessionToken(from: random)
    let times = record.sessionTimes
    var session = Session(
      id: id ?? "se_" + Base64URL.encode(random.bytes(12)), token: token.hash, account: account,
      createdAt: request.now,
      expiresAt: request.now + times.lifetime, idle: times.idle, lastSeenAt: request.now,
      passed: record.passed,
      userAgent: request.client.userAgent.map { String($0.prefix(256)) })
    session.address = request.use.address
    session.lastAddress = request.use.address
    session.isRemembered = record.isRemembered
    return (session, token)
  }

  /// The existing session with the added proofs and a new token. It keeps its expiry and whether the user
  /// chose to stay signed in: a step-up does not extend a session.
  /// - Parameter reduced: the providers of which something was removed.
  private func growing(
    _ own: Session, of account: String, forgetting reduced: Set<ProviderName>, _ flow: FlowTransaction
  ) -> (Session, SessionToken) {
    let record = flow.record
    let token = SessionToken(from: random)
    // Earlier steps keep their times; for each provider the latest step counts. Attack: an identity of the thief's own,
    // passed for an account that was then merged into the victim's, is not a second factor of the victim's.
    let again = Set(own.account == account ? record.passed.map(\.provider) : own.passed.map(\.provider))
    let passed = (own.passed.filter { !again.contains($0.provider) } + record.passed).filter {
      !reduced.contains($0.provider)
    }
    return (own.renewed(token.hash, of: account, passed: passed, by: flow.request.use), token)
  }

  /// The factors of which the flow has removed something.
  ///
  /// Attack: a session that has passed a factor keeps access to routes that require it after the account has lost that
  /// factor, or after the credential that was used was removed. The session therefore forgets its steps by such a
  /// factor, including those of this flow.
  private func providersWithRemovals(_ before: Account?, _ after: Account, _ purpose: FlowPurpose) -> Set<ProviderName>
  {
    var reduced = before?.credentials.subtracting(after.credentials) ?? []
    switch purpose {
    case .factor(let provider, .disable), .factor(let provider, .reset): reduced.insert(provider)
    default: break
    }
    return reduced
  }

  /// A new user goes to `next.new`, with the original target as a parameter, unless an app has begun the sign-in: it
  /// waits for the answer. A returning user goes to the target.
  private func destination(_ record: FlowRecord, isNew: Bool) -> String {
    guard isNew else { return record.returnTo ?? record.next.returning }
    guard let returnTo = record.returnTo else { return record.next.new }
    if PagePath.continuesApp(returnTo) { return returnTo }
    return record.next.new + (record.next.new.contains("?") ? "&" : "?") + "return_to="
      + PercentEncoding.encode(returnTo)
  }
}

extension [PassedStep] {
  /// The providers of the steps that were not too new.
  fileprivate var settled: [ProviderName] { counted.map(\.provider) }
}

extension FlowTransaction {
  /// Whether the flow, in which all steps were skipped or did not apply, has proved nothing and set nothing.
  var hasNoEffect: Bool {
    record.passed.isEmpty && record.basis.introduced.isEmpty && record.pendingProofs.records.isEmpty
  }
}

extension RequestContext {
  /// Maps a conflict of the final transaction to a refusal.
  func refusal(_ conflict: ApplyResult.Conflict) -> FlowError {
    switch conflict {
    case .flowChanged, .recordChanged, .leaseLost: refusal(.stepNotOpen, because: .changedMeanwhile)
    case .epochChanged: refusal(.flowExpired, because: .accountChanged)
    case .identifierTaken: refusal(.alreadyRegistered)
    case .accountUnavailable: refusal(.disabled, because: .accountUnavailable)
    case .sessionEnded: unauthenticated()
    case .codeSpent: refusal(.flowExpired)
    case .tokenNameTaken, .tooManyTokens, .tooManyDeviceRequests: refusal(.denied)
    case .tokenGone, .appGrantChanged: refusal(.notFound)
    // Another flow has used it since this one has read it.
    case .invitationGone: refusedInvitation(.used)
    }
  }
}
