import MoongateCore
import NIOCore

/// Tunnels, such as WebSockets, and the sessions on which tunnels and event streams depend.
extension ClientConnection {
  func tunnelBegan(_ head: ResponseHead, by connection: UpstreamConnection) {
    var changes: AnswerChanges?
    if case .exchanging(let service) = state.phase {
      bind(service)
      changes = answerChanges(service, from: connection.target)
    }
    let now = loop.now
    let action = state.tunnelBegan(connection, at: now)
    loop.metrics.tunnels += 1
    wire?.watchPeer()
    connection.watchPeer()
    let rewriter = AnswerRewriter(
      date: loop.dateLine(at: now), framing: .none, keepsAlive: true, minorVersion: 1, isUpgrade: true,
      changes: changes)
    wire?.send(rewriter.write(head, room: 0))
    perform(action)
    connection.flush()
    resumeReading()
  }

  func tunnelRead(_ bytes: ByteBuffer) {
    state.tunnelRead(bytes.readableBytes, at: loop.now)
    wire?.send(bytes)
  }

  /// The upstream has closed its output.
  func tunnelEnded() {
    guard case .tunnel(let upstream, _) = state.phase else { return }
    wire?.flush()
    perform(state.tunnelEnded())
    upstream.close()
  }

  // MARK: sessions that end

  /// Ends the tunnel or event stream with its session.
  ///
  /// Attack: a sign-out while the upstream prepares its response. That change is not announced again, so the store is
  /// asked about a session that is no longer cached.
  func bind(_ service: ServiceExchange) {
    guard let session = service.session else { return }
    let cache = session.snapshot.token == nil ? loop.sessions : loop.tokens.cache
    service.boundSession = BoundSession(session: session, isDoubted: !cache.holds(session))
  }

  /// Asks the store about the session of a tunnel or an event stream that has changed.
  func sessionsChanged(_ changes: SessionChanges) {
    guard let session = boundSession?.session.snapshot.session else { return }
    guard changes.isIncomplete || changes.tokens.contains(session.token) || changes.accounts.contains(session.account)
    else { return }
    // A lookup that is already open may return an answer from before the change.
    boundSession?.isDoubted = true
    checkBoundSession()
  }

  /// Whether the upstream knows the current entitlements of the session.
  private func hasToldEntitlements(of session: CachedSession) -> Bool {
    guard let service = state.service else { return false }
    return session.entitlements(in: loop.currentPlan(), at: loop.now).outcome == .success(service.entitlements)
  }

  func checkBoundSession() {
    guard let bound = boundSession, !bound.isBeingChecked else { return }
    boundSession?.isBeingChecked = true
    boundSession?.isDoubted = false
    let asked = state.serial
    let session = bound.session
    let token = session.snapshot.token
    let cache = token == nil ? loop.sessions : loop.tokens.cache
    cache.ask(session.key, by: token.map { loop.tokens.lookup(of: $0.id) } ?? loop.lookup(of: session.key)) {
      [weak self] answer in
      guard let self, self.state.serial == asked, self.boundSession != nil else { return }
      self.boundSession?.isBeingChecked = false
      switch answer {
      case .live(let renewed):
        // Attack: a WebSocket that a group member opened continues after the membership has ended. The upstream
        // received the groups only once, so any change of them closes it. A client that still has access can open it
        // again.
        if self.hasToldEntitlements(of: renewed) { self.boundSession?.session = renewed } else { self.abort() }
      case .none: self.abort()
      // Asked again on the next tick.
      case .unavailable, .unknown, .locked: self.boundSession?.isDoubted = true
      }
    }
  }
}
