import MoongateCore

/// A change, prepared before the transaction: records are already encoded as JSON.
struct PreparedChange: Sendable {
  private let change: Change
  private let encoded: [UInt8]
  /// For a deletion: the first event number that was not processed before the transaction.
  var trailFrom = Int64.min
  /// The search terms for flows of that user.
  var traces: FlowTraces?

  init(_ change: Change) {
    self.change = change
    encoded =
      switch change {
      case .putFlow(let record): record.next.json
      case .putSession(let session), .replaceSession(_, by: let session): session.passed.json
      case .audit(let event): event.json
      default: []
      }
  }

  /// What must be removed from the audit trail.
  var forgotten: Trail? {
    if case .deleteAccount(let account, let traces) = change { Trail(account: account, traces: traces) } else { nil }
  }

  /// The flow that the change stores, in its stored form.
  var flow: (FlowRecord, encoded: [UInt8])? {
    if case .putFlow(let record) = change { (record.next, encoded) } else { nil }
  }

  /// Applies the changes in order.
  /// - Returns: the locks that they began, and the changed sessions and accounts.
  /// - Throws: `ChangeConflict`.
  static func apply(
    _ changes: [Self], at now: Timestamp, _ rows: some SQLTransaction
  ) throws -> (locks: [LockBegun], sessions: SessionChanges) {
    var rowLocks = RowLocks()
    for change in changes { change.addLocks(to: &rowLocks) }
    // Reads that are possible now are sent with the locks, in one round trip.
    let first = changes.first?.settlement
    let reads = first?.reads ?? []
    try rowLocks.take(rows)
    let (stored, found) = try CounterRow.rows(first?.judged ?? [], reads + changes.compactMap(\.replaced), rows)
    let notifications = ChangeNotifications()
    for row in found.dropFirst(reads.count).joined() { notifications.add(token: try row.bytes(0)) }
    var locks = try first?.settle(stored, found.prefix(reads.count), rows) ?? []
    for change in changes.dropFirst(first == nil ? 0 : 1) {
      if let settlement = change.settlement {
        let (stored, found) = try CounterRow.rows(settlement.judged, settlement.reads, rows)
        locks += try settlement.settle(stored, found, rows)
      } else {
        try change.apply(at: now, notifications, rows)
      }
    }
    try notifications.write(at: now, rows)
    return (locks, notifications.changes)
  }

  private var settlement: Settlement? { if case .settle(let settlement) = change { settlement } else { nil } }

  /// The read that finds the tokens of replaced sessions.
  private var replaced: SQLRead? {
    switch change {
    case .replaceSession(_, let session): SessionRows.replaced(by: session)
    default: nil
    }
  }

  /// More than 60 lines: a case for each kind of change.
  private func apply(at now: Timestamp, _ notifications: ChangeNotifications, _ rows: some SQLTransaction) throws {
    switch change {
    case .settle: break
    case .putFlow(let record): try FlowRows.put(record, encoded: encoded, rows)
    case .deleteFlow(let id, let version): try FlowRows.delete(id, version: version, rows)
    case .createAccount(let account, let providers):
      try IdentifierRows.create(account, forgetting: providers, notifications, rows)
    case .verifyIdentifier(let account, let identifier, let providers, let wait):
      let held = HeldIdentifier(identifier: identifier, verifiedAt: now, waitsUntil: wait)
      try IdentifierRows.verify(held, of: account, forgetting: providers, notifications, rows)
    case .renewIdentifier(let account, let identifier):
      try IdentifierRows.renew(identifier, of: account, notifications, rows)
    case .putRecheck(let account, let identity, let recheck, let fence):
      try RecheckRows.put(recheck, of: identity, account, under: fence, rows)
    case .putProviderRecord(let account, let provider, let sealed):
      try AccountRows.put(sealed, of: account, for: provider, at: now, notifications, rows)
    case .markImportedHash(let account, let provider, let work):
      try AccountRows.markImportedHash(work, of: account, for: provider, rows)
    case .setDueChange(let account, let provider, let due):
      try AccountRows.setDueChange(due, of: account, for: provider, notifications, rows)
    case .recordReset(let account, let provider):
      try AccountRows.recordReset(of: account, for: provider, at: now, notifications, rows)
    case .requireProviderRecord(let account, let provider, let hash):
      let sealed = try AccountRows.record(of: account, for: provider, rows)
      guard sealed.map({ TokenHash(of: $0) }) == hash else { throw ChangeConflict(.recordChanged) }
    case .requireEpoch(let version): try AccountRows.requireEpoch(version, rows)
    case .raiseEpoch(let account, let keepsTokens):
      try AccountRows.raiseEpoch(of: account, keepsTokens: keepsTokens, notifications, rows)
    case .claimIdentifier(let account, let identifier):
      try IdentifierRows.claim(identifier, of: account, notifications, rows)
    case .reclaimAccount(let account, let identifier, let kept):
      try IdentifierRows.reclaim(account, by: identifier, keeping: kept, notifications, rows)
    case .dropIdentifiers(let account, let kind, let kept):
      try IdentifierRows.drop(kind, of: account, except: kept, notifications, rows)
    case .nameAccount(let account, let first, let last):
      try AccountRows.name(account, first: first, last: last, notifications, rows)
    case .setLanguage(let account, let language): try AccountRows.setLanguage(account, language, notifications, rows)
    case .renameAccount(let account, let first, let last):
      try AccountRows.rename(account, first: first, last: last, notifications, rows)
    case .removeIdentifier(let account, let identifier):
      try IdentifierRows.remove(identifier, from: account, notifications, rows)
    case .absorbAccount(let account, let heir, let wait):
      try IdentifierRows.absorb(account, into: heir, at: now, waitingUntil: wait, notifications, rows)
    case .clearCounters(let limits):
      for var counter in try Ledger(limits, nil, at: now, rows).counters { try counter.forget(at: now, rows) }
    case .recordUse(let account): try AccountRows.recordUse(account, at: now, rows)
    case .setLocked(let account, let isLocked): try AccountRows.setLocked(account, isLocked, notifications, rows)
    case .setGroupMembership(let account, let group, let isMember):
      try GroupRows.set(account, in: group, isMember, at: now, notifications, rows)
    case .deleteAccount(let account, let traces):
      try AccountDeletionRows.delete(account, traces: traces, trailFrom: trailFrom, notifications, rows)
    case .putSession(let session): try SessionRows.put(session, passed: encoded, rows)
    case .replaceSession(let token, let session):
      try SessionRows.replace(token, by: (session, encoded), at: now, notifications, rows)
    case .putDomainToken(let new): try DomainTokenRows.put(new, notifications, rows)
    case .spendCode(let code, let until): try SpentCodeRows.spend(code, until: until, rows)
    case .endSiteSession(let hash): try SiteSessionRows.end(hash, at: now, rows)
    case .endSession(let token): try DomainTokenRows.endSession(token, notifications, rows)
    case .endSessions(let account, let except): try SessionRows.end(of: account, except: except, notifications, rows)
    case .trustDevice(let device): try DeviceRows.put(device, rows)
    case .forgetDevice(let account, let id): try DeviceRows.forget(id, of: account, notifications, rows)
    case .forgetDevices(let account, let kept):
      try DeviceRows.forgetAll(of: account, except: kept, notifications, rows)
    case .putAccessToken(let token, let most): try AccessTokenRows.put(token, most: most, rows)
    case .supersedeAccessToken(let id, let until): try AccessTokenRows.supersede(id, until: until, notifications, rows)
    case .endAccessToken(let id): try AccessTokenRows.end(id, notifications, rows)
    case .noteAccessTokenExpired(let id): try AccessTokenRows.markExpired(id, rows)
    case .putInvitation(let invitation): try InvitationRows.put(invitation, rows)
    case .useInvitation(let code): try InvitationRows.use(code, at: now, rows)
    case .endInvitation(let id): try InvitationRows.end(id, rows)
    case .requireLease(let lease): try AccountImportRows.require(lease, at: now, rows)
    case .importAccount(let new): try AccountImportRows.add(new, at: now, rows)
    case .completeImport(let lease, let providers): try AccountImportRows.complete(lease, forgetting: providers, rows)
    case .clearTimer(let key): try rows.run("DELETE FROM timer WHERE key = ?1", [.bytes(key)])
    case .audit(let event): try EventRows.append(event, encoded: encoded, rows)
    case .putAppGrant(let grant): try AppGrantRows.put(grant, at: now, rows)
    case .rotateAppGrant(let id, let old, let new, let moment, let end):
      try AppGrantRows.rotate(id, AppGrantRotation(old: old, new: new, at: moment, expiresAt: end), rows)
    case .endAppGrant(let id): try AppGrantEnding.end(id, at: now, rows)
    case .putAppConnection(let connection): try AppConnectionRows.put(connection, rows)
    case .endAppConnection(let account, let app): try AppConnectionRows.end(app, of: account, at: now, rows)
    case .putDeviceRequest(let request, let most): try DeviceRequestRows.put(request, most: most, at: now, rows)
    case .decideDevice(let user, let outcome): try DeviceRequestRows.decide(user, outcome, at: now, rows)
    case .pollDevice(let device, let moment, let interval):
      try DeviceRequestRows.poll(device, at: moment, interval: interval, rows)
    case .takeDevice(let device): try DeviceRequestRows.take(device, rows)
    case .settleAppNotice(let id, let due): try AppGrantEnding.settleNotice(id, due: due, rows)
    }
  }

  /// Adds the locks for what the change reads before it writes. A flow or a session has only one row and needs no
  /// further lock.
  private func addLocks(to rowLocks: inout RowLocks) {
    switch change {
    case .settle(let settlement):
      rowLocks.add(settlement.limits)
      if let timer = settlement.timer { rowLocks.add(timer: timer.key) }
    case .clearCounters(let limits): rowLocks.add(limits)
    case .clearTimer(let key): rowLocks.add(timer: key)
    case .verifyIdentifier(let account, _, _, _), .renewIdentifier(let account, _),
      .putRecheck(let account, _, _, _), .putProviderRecord(let account, _, _),
      .requireProviderRecord(let account, _, _), .markImportedHash(let account, _, _),
      .setDueChange(let account, _, _),
      .claimIdentifier(let account, _), .reclaimAccount(let account, _, _), .dropIdentifiers(let account, _, _),
      .nameAccount(let account, _, _),
      .setLanguage(let account, _),
      .renameAccount(let account, _, _), .removeIdentifier(let account, _), .setGroupMembership(let account, _, _),
      .recordUse(let account), .setLocked(let account, _), .deleteAccount(let account, _), .endSessions(let account, _),
      .raiseEpoch(let account, _), .recordReset(let account, _), .forgetDevice(let account, _),
      .forgetDevices(let account, _):
      rowLocks.add(account: account)
    case .trustDevice(let device): rowLocks.add(account: device.account)
    case .requireEpoch(let version): rowLocks.add(account: version.id)
    case .absorbAccount(let account, let heir, _):
      rowLocks.add(account: account)
      rowLocks.add(account: heir)
    case .putSession(let session), .replaceSession(_, let session):
      rowLocks.add(account: session.account)
      for hash in session.passed.compactMap(\.siteSession) { rowLocks.add(siteSession: hash) }
    case .endSiteSession(let hash): rowLocks.add(siteSession: hash)
    case .putDomainToken(let new): rowLocks.add(account: new.session.account)
    case .putAccessToken(let token, _): if let owner = token.owner { rowLocks.add(account: owner.id) }
    case .putAppGrant(let grant): if let account = grant.account { rowLocks.add(account: account) }
    case .endAppConnection(let account, _): rowLocks.add(account: account)
    case .putAppConnection(let connection): rowLocks.add(account: connection.account)
    case .putDeviceRequest(let request, _): rowLocks.add(devicesOf: request.app, at: request.address)
    case .putFlow, .deleteFlow, .createAccount, .endSession, .spendCode, .supersedeAccessToken, .endAccessToken,
      .noteAccessTokenExpired, .putInvitation, .useInvitation, .endInvitation, .requireLease, .importAccount,
      .completeImport, .rotateAppGrant, .endAppGrant, .decideDevice, .pollDevice, .takeDevice, .settleAppNotice, .audit:
      break
    }
  }
}

extension FlowRecord {
  /// The record with its next version.
  fileprivate var next: FlowRecord {
    var next = self
    next.version += 1
    return next
  }
}
