import MoongateCore
import NIOCore

/// From a judged request to its answer.
extension ClientConnection {
  /// Bodies up to this size are copied behind their head, into one write.
  private static let copied = 16 * 1024

  func beginExchange() {
    phase = .exchanging
    lastActivity = loop.now
    noteJudged()
    guard let route = exchange.route else { return }
    if route.targets.count > 1 {
      let first = route.next
      route.next = (first + 1) % route.targets.count
      let all = route.targets.indices.map { (first + $0) % route.targets.count }
      // Those that failed a moment ago come last: they are tried where nothing else is left.
      exchange.order =
        all.filter { !route.targets[$0].isDown(at: lastActivity) }
        + all.filter { route.targets[$0].isDown(at: lastActivity) }
    }
    attempt()
  }

  /// Tries the next target of the route.
  private func attempt() {
    guard phase == .exchanging, let route = exchange.route else { return }
    guard exchange.tried < route.targets.count else {
      return refuse(route, exchange.hasTimedOut ? .timeout : .unreachable)
    }
    let target = route.targets[exchange.order.isEmpty ? 0 : exchange.order[exchange.tried]]
    let now = loop.now
    lastActivity = now
    if !exchange.needsFreshConnection, let idle = target.takeIdle(canRepeat: exchange.isRepeatable, now: now) {
      exchange.isReused = true
      return send(on: idle)
    }
    exchange.isReused = false
    let asked = serial
    target.connect(timeout: route.timeout) { [weak self] result in
      guard let self, self.serial == asked, self.phase == .exchanging else {
        if case .success(let connection) = result { connection.end(reusable: true) }
        return
      }
      switch result {
      case .success(let connection):
        self.send(on: connection)
        self.process()
        self.upstream?.flush()
      case .failure(let error):
        target.failed(at: self.loop.now)
        let isSlow = if case .connectTimeout? = error as? ChannelError { true } else { false }
        if isSlow { self.exchange.hasTimedOut = true }
        self.passOver(target, isSlow ? .timeout : .unreachable, route)
        self.attempt()
      }
    }
  }

  private func send(on connection: UpstreamConnection) {
    upstream = connection
    lastActivity = loop.now
    exchange.bodyWindow = (lastActivity, 0)
    connection.begin(for: self, toHead: exchange.isHead, wantsUpgrade: exchange.wantsUpgrade)
    connection.write(exchange.upstreamHead)
    exchange.bytesWereSent = true
    if !isProcessing || exchange.requestIsDone { connection.flush() }
    resumeReading()
  }

  private func upstreamNames(_ route: RoutePlan) -> String {
    route.route.upstreams.map(Self.name).joined(separator: " ")
  }

  private static func name(of upstream: Upstream) -> String {
    "\(upstream.isSecure ? "https" : "http")://\(upstream.host):\(upstream.port)"
  }

  // MARK: the request's body

  /// - Returns: whether there is more to do with the bytes at hand.
  func forwardBody() -> Bool {
    guard !exchange.requestIsDone, let upstream else { return false }
    do throws(MessageFault) {
      while true {
        switch try exchange.body.next(&input) {
        case .incomplete: return false
        case .data(let data):
          if let left = exchange.bodyLeft {
            guard data.readableBytes <= left else {
              tooLargeInStream()
              return false
            }
            exchange.bodyLeft = left - data.readableBytes
          }
          exchange.bodyWindow.bytes += data.readableBytes
          if exchange.isChunked { writeChunk(data) { upstream.write($0) } } else { upstream.write(data) }
        case .end:
          exchange.requestIsDone = true
          if exchange.isChunked { upstream.write(ByteBuffer(staticString: "0\r\n\r\n")) }
          upstream.flush()
          return false
        }
      }
    } catch {
      // What was sent upstream stays unfinished there: nothing that follows can be taken for a request.
      dropUpstream()
      if exchange.answerHasBegun { abort() } else { refuse(error) }
      return false
    }
  }

  private func tooLargeInStream() {
    dropUpstream()
    if exchange.answerHasBegun { abort() } else { refuse(.tooLarge, unread: true) }
  }

  private func writeChunk(_ data: ByteBuffer, _ write: (ByteBuffer) -> Void) {
    var head = ByteBuffer()
    head.reserveCapacity(data.readableBytes <= Self.copied ? data.readableBytes + 12 : 12)
    head.writeString(String(data.readableBytes, radix: 16))
    head.writeStaticString("\r\n")
    if data.readableBytes <= Self.copied {
      head.writeImmutableBuffer(data)
      head.writeStaticString("\r\n")
      write(head)
    } else {
      write(head)
      write(data)
      write(ByteBuffer(staticString: "\r\n"))
    }
  }

  func dropUpstream() {
    upstream?.close()
    upstream = nil
  }

  func upstreamWritabilityChanged() {
    lastActivity = loop.now
    exchange.bodyWindow = (lastActivity, 0)
    resumeReading()
  }

  // MARK: the answer

  /// Whether the client takes more bytes.
  var takesAnswer: Bool { wire?.isWritable ?? true }

  /// An answer before the answer. Only the 100 that was asked for is passed on; each of them breaks the silence.
  func answerInterim(_ status: Int) {
    lastActivity = loop.now
    guard status == 100, exchange.expectsContinue, !exchange.requestIsDone, !exchange.answerHasBegun else { return }
    exchange.expectsContinue = false
    exchange.bodyWindow = (lastActivity, 0)
    sendContinue()
  }

  func answerBegan(_ head: ResponseHead, by connection: UpstreamConnection) {
    lastActivity = loop.now
    connection.target.succeeded()
    exchange.answerHasBegun = true
    exchange.status = head.status
    exchange.upstreamHead = ByteBuffer()
    switch head.framing {
    case .none:
      // An answer to HEAD, and 304, tell the length that another answer would have.
      exchange.framing = .none
      if head.status != 204, let length = head.contentLength { exchange.framing = .length(length) }
    case .length(let length): exchange.framing = .length(length)
    case .chunked, .untilClose: exchange.framing = exchange.minorVersion == 1 ? .chunked : .untilClose
    }
    var isUntilClose = false
    if case .untilClose = exchange.framing { isUntilClose = true }
    exchange.closesAfter = !exchange.keepsAlive || isQuiescing || !exchange.requestIsDone || isUntilClose
    if let session = exchange.session, isEventStream(head) { bind(session) }
    var room = 0
    if case .length(let length) = head.framing { room = min(length, Self.copied) }
    pending = AnswerRewriter.write(
      head, date: loop.dateLine(), framing: exchange.framing, keepsAlive: !exchange.closesAfter,
      toMinorVersion: exchange.minorVersion, room: room,
      allocator: wire?.allocator ?? ByteBufferAllocator())
  }

  func answerData(_ data: ByteBuffer) {
    lastActivity = loop.now
    exchange.answerBytes += data.readableBytes
    if case .chunked = exchange.framing {
      writeChunk(data) { appendAnswer($0) }
    } else {
      appendAnswer(data)
    }
  }

  private func appendAnswer(_ data: ByteBuffer) {
    if data.readableBytes <= Self.copied, pending != nil {
      pending?.writeImmutableBuffer(data)
      return
    }
    writePending()
    wire?.send(data)
  }

  private func writePending() {
    guard let bytes = pending else { return }
    pending = nil
    wire?.send(bytes)
  }

  /// All that came in one go from the upstream is written in one go.
  func flushAnswer() {
    writePending()
    wire?.flush()
  }

  func answerEnded(by connection: UpstreamConnection) {
    guard connection === upstream else { return }
    if case .chunked = exchange.framing { appendAnswer(ByteBuffer(staticString: "0\r\n\r\n")) }
    writePending()
    upstream = nil
    exchange.outcome = .passed
    connection.end(reusable: exchange.requestIsDone)
    finish()
  }

  /// The connection to the upstream came to an end before the answer did.
  func upstreamFailed(_ failure: UpstreamFailure, _ connection: UpstreamConnection) {
    guard connection === upstream, let route = exchange.route else { return }
    dropUpstream()
    if exchange.answerHasBegun {
      // Attack (or accident): half an answer that looks whole. The client must see that it is not.
      let cause = UpstreamFailureLog.Cause.cut
      let decision = record(.upstreamUnavailable, detail: ["upstream": upstreamNames(route), "reason": cause.words])
      exchange.decision = decision
      report(cause, cause.words, route, decision)
      return abort()
    }
    // A connection that has been used before may end because it was idle; anything else says that something is wrong
    // over there.
    if case .closed = failure, exchange.isReused {} else { connection.target.failed(at: loop.now) }
    switch failure {
    case .silent: refuse(route, .timeout)
    case .unreadable(let reason): refuse(route, .unreadable, reason: reason)
    case .closed:
      guard exchange.isRepeatable else { return refuse(route, .closed) }
      if exchange.isReused {
        // It may have been closed before the request reached it: once more, on a connection of its own.
        exchange.needsFreshConnection = true
      } else {
        passOver(connection.target, .closed, route)
      }
      attempt()
    }
  }

  /// The next target is asked in place of this one. The log says so: people are served, and nobody would notice that
  /// one is dead.
  private func passOver(_ target: UpstreamTarget, _ cause: UpstreamFailureLog.Cause, _ route: RoutePlan) {
    exchange.tried += 1
    guard exchange.tried < route.targets.count else { return }
    loop.proxy.upstreamFailures.passedOver(
      cause, upstream: Self.name(of: target.upstream), route: loop.numbers.label(route.place))
  }

  /// Refuses a request that no upstream answered, counts it, and logs it.
  private func refuse(_ route: RoutePlan, _ cause: UpstreamFailureLog.Cause, reason: String? = nil) {
    let reason = reason ?? cause.words
    var refusal = RequestRefusal(
      cause == .timeout ? .upstreamTimeout : .upstreamUnavailable,
      detail: ["upstream": upstreamNames(route), "reason": reason])
    refusal.failure = (cause, reason, route)
    refuse(refusal)
  }

  func report(_ cause: UpstreamFailureLog.Cause, _ reason: String, _ route: RoutePlan, _ decision: DecisionID) {
    loop.numbers.count(route.place, cause)
    loop.proxy.upstreamFailures.report(
      cause, upstream: upstreamNames(route), route: loop.numbers.label(route.place), reason: reason, decision: decision)
  }

  private func isEventStream(_ head: ResponseHead) -> Bool {
    let bytes = head.bytes.readableBytesUInt8Span
    return head.fields.contains { field in
      field.kind == .other && field.nameLength == 12 && field.valueLength >= 17
        && ByteClass.equal(bytes, field.name, "content-type")
        && ByteClass.equal(bytes, field.value.lowerBound..<field.value.lowerBound + 17, "text/event-stream")
    }
  }

  // MARK: tunnels

  func tunnelBegan(_ head: ResponseHead) {
    exchange.answerHasBegun = true
    exchange.requestIsDone = true
    phase = .tunnel
    exchange.status = 101
    exchange.outcome = .tunnel
    loop.numbers.tunnels += 1
    lastActivity = loop.now
    if let session = exchange.session { bind(session) }
    wire?.watchPeer()
    upstream?.watchPeer()
    let bytes = AnswerRewriter.write(
      head, date: loop.dateLine(), framing: .none, keepsAlive: true, toMinorVersion: 1, upgrade: true, room: 0,
      allocator: wire?.allocator ?? ByteBufferAllocator())
    wire?.send(bytes)
    // What the client sent behind its request belongs to the tunnel.
    if input.readableBytes > 0 {
      upstream?.write(input)
      upstream?.flush()
      input = ByteBuffer()
    }
    resumeReading()
  }

  func tunnelRead(_ bytes: ByteBuffer) {
    if inputHasEnded { lastActivity = loop.now }
    exchange.answerBytes += bytes.readableBytes
    wire?.send(bytes)
  }

  /// The upstream has sent its last byte.
  func tunnelEnded() {
    wire?.flush()
    linger()
    dropUpstream()
  }

  // MARK: sessions that end

  /// Ties a tunnel or an event stream to its session. Attack: a sign-out while the upstream was thinking about its
  /// answer: of that one nobody tells again, so a session that is not remembered any more is asked for.
  private func bind(_ session: CachedSession) {
    boundSession = session
    sessionIsDoubted = !(session.snapshot.token == nil ? loop.sessions : loop.tokens.cache).holds(session)
  }

  /// Asks again for the session of a tunnel or an event stream that a change is about.
  func sessionsChanged(_ changes: SessionChanges) {
    guard let session = boundSession?.snapshot.session else { return }
    guard changes.isIncomplete || changes.tokens.contains(session.token) || changes.accounts.contains(session.account)
    else { return }
    // Also where an answer is on its way already: it may be older than the change.
    sessionIsDoubted = true
    checkBoundSession()
  }

  /// Whether the upstream was told what the session is entitled to now.
  private func hasToldEntitlements(of session: CachedSession) -> Bool {
    session.entitlements(in: loop.currentPlan(), at: loop.now).outcome == .success(exchange.entitlements)
  }

  private func endBound() {
    dropUpstream()
    abort()
  }

  func checkBoundSession() {
    guard let session = boundSession, !isAskingForSession else { return }
    isAskingForSession = true
    sessionIsDoubted = false
    let asked = serial
    let token = session.snapshot.token
    let cache = token == nil ? loop.sessions : loop.tokens.cache
    cache.ask(session.key, by: token.map { loop.tokens.lookup(of: $0.id) } ?? loop.lookup(of: session.key)) {
      [weak self] answer in
      guard let self else { return }
      self.isAskingForSession = false
      guard self.serial == asked, self.boundSession != nil else { return }
      switch answer {
      case .live(let renewed):
        // Attack: a socket that was opened as a member of a group goes on after the membership has ended. The upstream
        // learned the groups from its head alone, so any other groups end it; who may still open it opens it again.
        if self.hasToldEntitlements(of: renewed) {
          self.boundSession = renewed
        } else {
          self.endBound()
        }
      case .none: self.endBound()
      // Asked again at the next tick.
      case .unavailable, .unknown, .locked: self.sessionIsDoubted = true
      }
    }
  }
}
