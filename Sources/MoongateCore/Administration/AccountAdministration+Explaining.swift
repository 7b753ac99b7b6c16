import MoongateSDK

// Finds what led to a refusal in earlier events of the audit trail.

extension AccountAdministration {
  /// The kinds of events that may end a session.
  private static let endings: Set<AuditEvent.Kind> = [
    .sessionEnded, .sessionStarted, .accountLocked, .accountDisabled, .factorChanged, .factorRemoved,
    .identifierChanged, .identifierRemoved,
  ]
  /// The kinds of events in which a session gets a token. A refusal of that token names it too, and is no beginning.
  private static let beginnings: Set<AuditEvent.Kind> = [.sessionStarted, .sessionExtended, .identifierRemoved]
  /// The maximum number of events that are searched.
  private static let most = 1_000

  /// The event with what earlier events say about its cause in its `detail`: who locked the account and when, or how
  /// the session of the request ended.
  package func explained(_ event: AuditEvent) async throws(StoreFault) -> AuditEvent {
    var event = event
    switch event.detail["cause"].flatMap(RefusalCause.init) {
    case .operatorLock, .accountUnavailable: try await addLock(to: &event)
    case .sessionEnded: try await addEnd(to: &event)
    default: break
    }
    return event
  }

  private func addLock(to event: inout AuditEvent) async throws(StoreFault) {
    guard let account = event.account else { return }
    guard let lock = try await lastLock(of: account, before: event.at) else {
      event.detail["locked_by"] = "not known: the audit trail no longer has the event, or the account was imported so"
      return
    }
    event.detail["locked_by"] = lock.actor
    event.detail["locked_at"] = lock.at.text
    event.detail["locked_reason"] = lock.detail["reason"]
    event.detail["locked_event"] = lock.id.text
  }

  /// The latest event by which an operator locked an account.
  /// - Parameter moment: later events do not count.
  func lastLock(of account: String, before moment: Timestamp? = nil) async throws(StoreFault) -> AuditEvent? {
    let filter = AuditFilter(people: .init(accounts: [account]), kinds: [.accountLocked, .accountDisabled])
    let events = try await store.events(matching: filter, limit: Self.most)
    return events.first { event in moment.map { event.at <= $0 } ?? true }
  }

  private func addEnd(to event: inout AuditEvent) async throws(StoreFault) {
    guard let token = event.detail["session_hash"] else { return }
    let beginnings = AuditFilter(kinds: Self.beginnings, sessionToken: token)
    guard let start = try await store.events(matching: beginnings, limit: 1).first, let account = start.account else {
      event.detail["session_end"] = "not known: no event of the audit trail is about this token"
      return
    }
    event.detail["session"] = start.detail["session"]
    event.detail["session_account"] = account
    let filter = AuditFilter(people: .init(accounts: [account]), kinds: Self.endings, since: start.at)
    let later = try await store.events(matching: filter, limit: Self.most).reversed()
    let end = later.first { [at = event.at] in $0.at <= at && $0.ends(start) }
    event.detail["session_end"] = end?.account(of: start) ?? start.expiry(at: event.at)
  }
}

extension AuditEvent {
  /// The operator and the tool of an operation.
  package var actor: String {
    let tool = detail["by"] ?? "an unknown tool"
    return detail["operator"].map { "\($0) (\(tool))" } ?? tool
  }

  /// Whether the event ended the session that began with another event.
  fileprivate func ends(_ start: AuditEvent) -> Bool {
    if replacesToken(of: start) { return true }
    switch kind {
    case .accountLocked, .accountDisabled: return true
    case .sessionEnded: return detail["session"].map { $0 == start.detail["session"] } ?? true
    // An operator's reset ends all sessions.
    case .factorRemoved where detail["by"] != nil: return true
    default: return detail["sessions"] != nil && detail["request"] != start.detail["request"]
    }
  }

  /// Whether the session got another token by the event.
  private func replacesToken(of start: AuditEvent) -> Bool {
    kind != .sessionExtended && detail["session"] == start.detail["session"]
      && detail["session_hash"].map { $0 != start.detail["session_hash"] } ?? false
  }

  /// How the event ended the session, in words.
  fileprivate func account(of start: AuditEvent) -> String {
    let what =
      replacesToken(of: start)
      ? "it got a new token, and this one stopped working"
      : "\(kind.rawValue)\(detail["by"] == nil ? "" : " by \(actor)")\(detail["because"].map { ": \($0)" } ?? "")"
    return "\(at.text): \(what) (\(id))"
  }

  /// How a session ended without an event.
  fileprivate func expiry(at moment: Timestamp) -> String {
    guard let end = detail["expires_at"] else { return "it expired" }
    return end <= moment.text ? "\(end): its lifetime ended" : "it was not used for longer than its idle time"
  }
}
