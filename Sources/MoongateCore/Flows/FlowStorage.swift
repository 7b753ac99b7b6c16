import MoongateSDK

// Loads, binds and stores flows.

/// What a client wants to do with a flow.
enum FlowUse: Sendable {
  /// Change it: begin, submit, resend, skip.
  case drive
  /// Read it, cancel it or redeem its code. An app that handed the flow to a browser may do this.
  case look
}

/// Loads flows for the clients that may use them, and stores them over the version that they were loaded in.
struct FlowStorage: FlowPart {
  let services: FlowServices
  let pending: PendingFlows
  let checks: AccountChecks
  let grants: GrantChecks
  let ledger: AttemptLedger

  /// Loads a flow if this client may use it and it is open.
  /// - Parameter identifier: what the client sent, if the account that has verified it will be needed. It is read
  ///   together with the flow.
  func load(
    _ id: FlowID, _ request: RequestContext, completeToo: Bool = false, as use: FlowUse = .drive,
    withHolderOf identifier: Identifier? = nil
  ) async throws(FlowError) -> FlowTransaction {
    let accounts = LoadedAccounts()
    guard let stored = try await find(id, withHolderOf: identifier, accounts) else {
      throw request.refusal(.flowNotFound, because: .unknownFlow)
    }
    request.about(stored, keys)
    guard let record = try await bound(stored, request) else {
      throw request.refusal(.flowNotFound, because: .otherBrowser)
    }
    try checks.demandOwnSession(record, request)
    let machine = FlowMachine(record)
    switch machine.closed(at: request.now) {
    case nil:
      if use == .drive { try grants.demandAllowed(record, request) }
      return FlowTransaction(id, machine, request, accounts)
    case .gone: throw request.refusal(.flowNotFound, because: .lifetimeOver)
    case .expired: throw request.refusal(.flowExpired, because: .lifetimeOver)
    case .over:
      guard completeToo, record.status == .complete else {
        throw request.refusal(.stepNotOpen, because: .flowOver)
      }
      return FlowTransaction(id, machine, request, accounts)
    }
  }

  /// The flow as this process remembers storing it, if this client may use it and it is open. Saves a round trip; see
  /// `RecentFlow`. A refusal because of it counts only if the store has the same version.
  func recent(_ id: FlowID, _ request: RequestContext) -> FlowTransaction? {
    guard pending.find(id.hash) == nil, let record = store.recentFlow(id.hash), isBound(record, request)
    else { return nil }
    do throws(FlowError) {
      try checks.demandOwnSession(record, request)
      try grants.demandAllowed(record, request)
    } catch { return nil }
    let machine = FlowMachine(record)
    guard machine.closed(at: request.now) == nil else { return nil }
    request.about(record, keys)
    var flow = FlowTransaction(id, machine, request)
    flow.recent = RecentFlow(record)
    return flow
  }

  /// The flow's record, in memory or in the store. It does not check the client: the caller must.
  /// - Parameters:
  ///   - identifier: if given, the account that has verified it is read with a flow in the store.
  ///   - accounts: keeps that account.
  func find(_ id: FlowID, withHolderOf identifier: Identifier? = nil, _ accounts: LoadedAccounts? = nil)
    async throws(FlowError) -> FlowRecord?
  {
    if let waiting = pending.find(id.hash) { return waiting }
    guard let identifier, let accounts else {
      return try await asking { () async throws(StoreFault) in try await store.flow(id.hash) }
    }
    let (record, holder) = try await asking { () async throws(StoreFault) in
      try await store.flow(id.hash, withHolderOf: identifier)
    }
    accounts.keep(holder, of: identifier)
    return record
  }

  /// The flow, if the client may use it; nil otherwise, as if the flow did not exist.
  ///
  /// Attack: the link of a flow that the attacker created by the API. The victim types the genuine code on the genuine
  /// page, and the attacker, who has the flow's ID, completes it. Pages therefore show only flows of their own browser,
  /// and the API cannot change a browser's flow without its cookie.
  ///
  /// A native app opens the hosted pages in the system's browser. Its flow has a grant, is bound to the first browser
  /// that opens it, and ends in a code that goes to the app's own address.
  ///
  /// Attack: the attacker creates such a flow, registers the victim's address with a password of their own by the API,
  /// and sends the link; the victim types the genuine code. The API therefore begins no step of such a flow
  /// (`GrantChecks.demandAllowed`), and a flow with a step is bound to no browser.
  ///
  /// An operator's link is for whoever holds it. Nobody but an operator makes one, and it opens no session.
  func bound(_ record: FlowRecord, _ request: RequestContext) async throws(FlowError) -> FlowRecord? {
    if isBound(record, request) { return record }
    guard record.browser == nil, record.grant != nil, record.step == nil, let browser = request.client.browser else {
      return nil
    }
    guard let bound = try await bind(record, to: browser, request), bound.browser == browser else { return nil }
    return bound
  }

  /// Whether the client may use the flow as it is: it is the flow's browser, or the flow has none and is not for pages.
  private func isBound(_ record: FlowRecord, _ request: RequestContext) -> Bool {
    let client = request.client
    guard let browser = record.browser else { return client.entryPoint != .page || record.isByOperator }
    // The app may look, and cancel. `GrantChecks.demandAllowed` refuses its changes.
    return browser == client.browser || record.grant != nil && client.entryPoint == .api
  }

  /// Binds a flow to the browser that opens it, using optimistic locking. If two browsers open it at once, the first
  /// one gets it.
  private func bind(_ record: FlowRecord, to browser: TokenHash, _ request: RequestContext) async throws(FlowError)
    -> FlowRecord?
  {
    if let waiting = pending.bind(record.id, to: browser) { return waiting }
    var bound = record
    bound.browser = browser
    let changed = bound
    // Read the result from the store: another browser may have been first.
    _ = try await asking { () async throws(StoreFault) in try await store.apply([.putFlow(changed)], at: request.now) }
    return try await asking { () async throws(StoreFault) in try await store.flow(record.id) }
  }

  /// Stores the flow together with its other changes in one transaction.
  /// - Parameter query: what to read at the end of the transaction.
  func store(_ flow: FlowTransaction, reading query: LedgerQuery? = nil) async throws(FlowError) -> LedgerState? {
    switch try await asking({ () async throws(StoreFault) in
      try await store.apply(flow.changes + [.putFlow(flow.record)], reading: query, at: flow.request.now)
    }) {
    case .applied(_, let ledgerState):
      pending.remove(flow.id.hash)
      return ledgerState
    case .conflict: throw flow.request.refusal(.stepNotOpen, because: .changedMeanwhile)
    }
  }

  /// Keeps the record where the flow is, in memory or in the store, without other changes.
  func keep(_ flow: FlowTransaction) async throws(FlowError) {
    if pending.find(flow.id.hash) != nil { return pending.update(flow.record) }
    guard try await takeTurn(flow) else { throw flow.request.refusal(.stepNotOpen) }
  }

  /// Stores the record of a flow that is in the store already, without other changes.
  /// - Returns: false if another request has changed the flow.
  func takeTurn(_ flow: FlowTransaction) async throws(FlowError) -> Bool {
    let result = try await asking { () async throws(StoreFault) in
      try await store.apply([.putFlow(flow.record)], at: flow.request.now)
    }
    guard case .applied = result else { return false }
    return true
  }

  /// Stores the flow and refunds an attempt. The attempt is refunded even if another request has changed the flow.
  /// - Returns: whether the flow was stored.
  @discardableResult
  func storeRefunding(_ flow: FlowTransaction, _ refund: Change) async throws(FlowError) -> Bool {
    switch try await asking({ () async throws(StoreFault) in
      try await store.apply([refund, .putFlow(flow.record)], at: flow.request.now)
    }) {
    case .applied:
      pending.remove(flow.record.id)
      return true
    case .conflict:
      try await ledger.settle([refund], flow.request)
      return false
    }
  }

  /// Settles a failure. A step that was opened by the same call stays open. For a flow in memory, the flow itself is
  /// not written.
  func settleFailure(_ settlement: Settlement, keeping record: FlowRecord?, _ request: RequestContext)
    async throws(FlowError) -> [LockBegun]
  {
    guard let record else { return try await ledger.settle([.settle(settlement)], request) }
    guard record.version > 0 else {
      let locks = try await ledger.settle([.settle(settlement)], request)
      pending.update(record)
      return locks
    }
    switch try await asking({ () async throws(StoreFault) in
      try await store.apply([.settle(settlement), .putFlow(record)], at: request.now)
    }) {
    case .applied(let locks, _): return locks
    // Another request has changed the flow. The failure still counts.
    case .conflict: return try await ledger.settle([.settle(settlement)], request)
    }
  }
}
