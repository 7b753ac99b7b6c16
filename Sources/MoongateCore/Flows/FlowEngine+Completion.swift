import MoongateSDK

// From the last step to a session: account, session and flow are stored in one transaction, or not at all.

extension FlowEngine {
  /// Goes on after a step was passed or skipped: to the next one, or to the end.
  func carryOn(_ machine: inout FlowMachine, id: FlowID, _ visit: Visit, changes: [Change]) async throws(Halt) -> FlowView {
    guard try await advance(&machine, visit) == .complete else { return try await store(machine, changes, id: id, visit) }
    return try await complete(machine, id: id, visit, changes: changes)
  }

  /// Makes the session, and the account where it is new.
  private func complete(_ before: FlowMachine, id: FlowID, _ visit: Visit, changes: [Change]) async throws(Halt) -> FlowView {
    // Attack: a flow whose steps were all skipped or did not apply. Nothing proved, nobody signed in.
    guard !before.record.passed.isEmpty else { throw visit.refusal(.denied) }
    var machine = before
    var changes = changes
    let known = try await person(machine.record)
    if known?.isLocked ?? false { throw visit.refusal(.disabled) }
    if known != nil, machine.record.accountRule == .new {
      // Concealed until the code was proved: now it is theirs to know.
      machine.failed()
      _ = try await store(machine, changes, id: id, visit)
      throw visit.refusal(.alreadyRegistered)
    }
    guard known != nil || machine.record.accountRule != .existing else { throw visit.refusal(.denied) }
    let account = known.map { proving($0, machine.record, visit) } ?? newAccount(machine.record, visit)
    if known == nil {
      changes.append(.createAccount(account))
      changes.append(.audit(event(.accountCreated, visit, record: machine.record, id: id)))
    } else {
      changes.append(.seen(account: account.id))
      for held in account.identifiers where held.verifiedAt == visit.now { changes.append(.verifyIdentifier(account: account.id, held.identifier)) }
    }
    let token = SessionToken(from: random)
    let rule = machine.record.session
    let session = Session(
      id: "se_" + Base64URL.encode(random.bytes(12)), token: token.hash, account: account.id, createdAt: visit.now,
      expiresAt: visit.now + rule.lifetime, idle: rule.idle, lastSeenAt: visit.now, passed: machine.record.passed,
      userAgent: visit.client.userAgent.map { String($0.prefix(256)) })
    // A new token at every sign-in; the one before it is dead.
    if let old = visit.client.session { changes.append(.endSession(old.session.token)) }
    let isNew = known == nil
    machine.completed(account: account.id, isNew: isNew, next: destination(machine.record, isNew: isNew))
    changes.append(.putSession(session))
    changes.append(.audit(event(.sessionStarted, visit, record: machine.record, id: id)))
    changes.append(.putFlow(machine.record))
    let final = changes
    switch try await asking({ () async throws(StoreFault) in try await store.apply(final, at: visit.now) }) {
    case .applied: pending.remove(id.hash)
    case .conflict(.flowChanged): throw visit.refusal(.stepNotOpen)
    case .conflict(.identifierTaken): throw visit.refusal(.alreadyRegistered)
    case .conflict(.accountUnavailable): throw visit.refusal(.disabled)
    }
    return FlowView(
      id: id, flow: machine.record.name, status: .complete, expiresAt: machine.record.expiresAt, choices: [], step: nil,
      passed: machine.record.passed, account: AccountView(account, isNew: isNew), session: SessionView(session, token: token.secret),
      next: machine.record.completedNext)
  }

  /// The account that the flow has proved itself to be; nil where there is none yet.
  private func person(_ record: FlowRecord) async throws(Halt) -> Account? {
    if let bound = try await loadAccount(record.account) { return bound }
    for identifier in record.proved {
      if let holder = try await asking({ () async throws(StoreFault) in try await store.account(holding: identifier) }) { return holder }
    }
    return nil
  }

  /// The account with what was just proved marked as verified now.
  private func proving(_ account: Account, _ record: FlowRecord, _ visit: Visit) -> Account {
    var account = account
    for identifier in record.proved {
      let held = account.identifiers.firstIndex { $0.identifier == identifier }
      if let held, account.identifiers[held].verifiedAt != nil { continue }
      if let held { account.identifiers.remove(at: held) }
      account.identifiers.append(HeldIdentifier(identifier: identifier, verifiedAt: visit.now))
    }
    return account
  }

  private func newAccount(_ record: FlowRecord, _ visit: Visit) -> Account {
    Account(
      id: "ac_" + Base64URL.encode(random.bytes(16)), createdAt: visit.now, lastSeenAt: visit.now,
      identifiers: record.proved.map { HeldIdentifier(identifier: $0, verifiedAt: visit.now) })
  }

  /// A new person always goes to `next.new`, which is told where they were going; a returning one goes there.
  private func destination(_ record: FlowRecord, isNew: Bool) -> String {
    guard isNew else { return record.returnTo ?? record.next.returning }
    guard let returnTo = record.returnTo else { return record.next.new }
    return record.next.new + (record.next.new.contains("?") ? "&" : "?") + "return_to=" + returnTo.queryEncoded
  }
}

extension String {
  /// As a value in a query: everything but RFC 3986's unreserved characters is percent-encoded.
  package var queryEncoded: String {
    let hex = Array("0123456789ABCDEF".utf8)
    var encoded: [UInt8] = []
    for byte in utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
        UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
        encoded.append(byte)
      default: encoded += [UInt8(ascii: "%"), hex[Int(byte >> 4)], hex[Int(byte & 15)]]
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }
}
