import NIOCore

/// The state of one client connection, or of one stream of HTTP/2: a value that sends nothing.
///
/// Its methods take an event and, where something must follow from it, return the action. `ClientConnection` passes on
/// the events of sockets and performs the actions. Documentation/architecture/request.md draws the phases.
struct ConnectionState {
  /// The phase of the current request. Each case carries the values that exist only in it. Large values are indirect,
  /// so that reading the phase copies one word.
  enum Phase {
    /// Waits for a head, or for the rest of one.
    case reading
    /// The store is asked for the session or token of the request.
    indirect case looking(RequestHead)
    /// A service is asked. The object is changed by `ClientConnection` too, which chooses its targets.
    case exchanging(ServiceExchange)
    /// Collects the body of a request for the gateway itself.
    indirect case collecting(OwnRequest)
    /// The gateway itself responds.
    case own
    /// The request is refused, and the rest of its body is read and dropped.
    case refused
    /// Bytes pass in both directions after a 101.
    case tunnel(UpstreamConnection, ServiceExchange)
    /// The last response was written. Bytes of the client are dropped until it closes.
    indirect case lingering(Lingering)
    case closed
  }

  /// A request for the gateway itself, until its body is complete.
  struct OwnRequest {
    let head: RequestHead
    var body = ByteBuffer()
  }

  struct Lingering {
    /// Whether to read on after the response, because bytes of the client may be unread. A plain close would then make
    /// the system send a reset, which can overtake the response.
    let readsOn: Bool
    /// The number of bytes that the client sent since.
    var dropped = 0
    /// Whether the response is incomplete, and only a reset of the connection shows that.
    var isCut = false
    /// Whether the system has taken all bytes that were written.
    var responseIsOut = false

    /// Closes without waiting for more.
    var close: ConnectionAction { isCut ? .reset(waits: false) : .close }
  }

  var phase = Phase.reading
  /// The current request and its response.
  var exchange = Exchange()
  /// Bytes that were received and not handled.
  var input = ByteBuffer()
  var decoder = RequestDecoder()
  /// Increases with each request and at the end, so that callbacks of an earlier request have no effect.
  var serial: UInt64 = 0
  /// When the last byte that the phase waits for arrived or left.
  var lastActivity = NIODeadline.uptimeNanoseconds(0)
  /// When a head, the body of a request for the gateway itself, or the rest of a refused body began, or when the last
  /// response was out.
  var began = NIODeadline.uptimeNanoseconds(0)
  /// Whether the client has closed its output.
  var inputHasEnded = false
  /// Whether the gateway is shutting down.
  var isQuiescing = false
  /// Whether there is one request only: this is a stream of HTTP/2.
  var hasOneRequest = false

  var isClosed: Bool { if case .closed = phase { true } else { false } }

  /// The connection to the upstream in `exchanging` and `tunnel`.
  var upstream: UpstreamConnection? {
    switch phase {
    case .exchanging(let service): service.upstream
    case .tunnel(let upstream, _): upstream
    case .reading, .looking, .collecting, .own, .refused, .lingering, .closed: nil
    }
  }

  /// The service that is asked in `exchanging`, and was asked in `tunnel`.
  var service: ServiceExchange? {
    switch phase {
    case .exchanging(let service), .tunnel(_, let service): service
    case .reading, .looking, .collecting, .own, .refused, .lingering, .closed: nil
    }
  }

  // MARK: the way of a request

  /// The connection is open.
  mutating func opened(at now: NIODeadline) { lastActivity = now }

  /// The store is asked about the credential of a request.
  mutating func beginLookup(for head: RequestHead, at now: NIODeadline) {
    phase = .looking(head)
    lastActivity = now
  }

  /// The request is for the gateway itself.
  mutating func beginOwn(_ head: RequestHead, at now: NIODeadline) -> ConnectionAction {
    phase = .collecting(OwnRequest(head: head))
    began = now
    return exchange.expectsContinue && !exchange.requestIsDone && input.readableBytes == 0 ? .sendContinue : .wait
  }

  /// The request is allowed, and an upstream is to be connected.
  mutating func beginExchange(_ service: ServiceExchange, at now: NIODeadline) {
    phase = .exchanging(service)
    lastActivity = now
  }

  /// A target of the service is tried.
  mutating func triesTarget(at now: NIODeadline) { lastActivity = now }

  /// The upstream is connected.
  mutating func connected(_ service: ServiceExchange, to upstream: UpstreamConnection, at now: NIODeadline) {
    service.upstream = upstream
    lastActivity = now
    exchange.bodyWindow = (now, 0)
    exchange.bytesWereSent = true
  }

  /// The upstream is not used any more, and the exchange is not complete.
  mutating func dropUpstream() -> ConnectionAction {
    guard case .exchanging(let service) = phase, let upstream = service.upstream else { return .wait }
    service.upstream = nil
    return .closeUpstream(upstream)
  }

  /// The upstream accepts no more bytes, or accepts them again.
  mutating func upstreamWritabilityChanged(at now: NIODeadline) {
    lastActivity = now
    exchange.bodyWindow = (now, 0)
  }

  // MARK: the response

  /// The upstream sent an interim response. Each counts as activity; only a requested 100 is forwarded.
  mutating func answerInterim(_ status: Int, at now: NIODeadline) -> ConnectionAction {
    lastActivity = now
    guard status == 100, exchange.expectsContinue, !exchange.requestIsDone, !exchange.answerHasBegun else {
      return .wait
    }
    exchange.expectsContinue = false
    exchange.bodyWindow = (now, 0)
    return .sendContinue
  }

  /// The upstream's response has begun.
  /// - Parameter isEventStream: whether the response may be silent for any time.
  mutating func answerBegan(_ head: borrowing ResponseHead, isEventStream: Bool, at now: NIODeadline) {
    lastActivity = now
    exchange.isEventStream = isEventStream
    exchange.answerHasBegun = true
    exchange.status = head.status
    service?.dropHead()
    switch head.framing {
    case .none:
      // A response to HEAD, and a 304, state the length of the response to a GET.
      exchange.framing = head.status == 204 ? .none : head.contentLength.map { .length($0) } ?? .none
    case .length(let length): exchange.framing = framing(length: length)
    case .chunked, .untilClose: exchange.framing = framing(length: nil)
    }
    exchange.closesAfter = mustClose || !exchange.requestIsDone
  }

  /// Takes back the upstream's response, so that the client gets another one.
  /// - Returns: false if part of it was written.
  mutating func retractAnswer() -> Bool {
    guard exchange.pending != nil else { return !exchange.answerHasBegun }
    exchange.pending = nil
    exchange.answerHasBegun = false
    exchange.isEventStream = false
    exchange.framing = .none
    exchange.answerBytes = 0
    exchange.trailers = nil
    service?.boundSession = nil
    return true
  }

  /// Bytes of the response's body arrived.
  mutating func answerData(_ count: Int, at now: NIODeadline) {
    lastActivity = now
    exchange.answerBytes += count
  }

  /// How a response of the length is sent; nil if the length is unknown.
  private func framing(length: Int?) -> BodyFraming {
    length.map { .length($0) } ?? (exchange.minorVersion == 1 ? .chunked : .untilClose)
  }

  /// Whether the connection closes after the response, whatever the response says.
  private var mustClose: Bool { !exchange.keepsAlive || isQuiescing || exchange.framing == .untilClose }

  /// The upstream's response is complete.
  mutating func answerEnded() -> ConnectionAction {
    service?.upstream = nil
    exchange.outcome = .passed
    return .finish
  }

  /// The upstream has switched protocols, and bytes pass in both directions from now on.
  mutating func tunnelBegan(_ upstream: UpstreamConnection, at now: NIODeadline) -> ConnectionAction {
    exchange.answerHasBegun = true
    exchange.requestIsDone = true
    exchange.status = 101
    exchange.outcome = .tunnel
    guard let service else { return .abort }
    service.dropHead()
    phase = .tunnel(upstream, service)
    lastActivity = now
    // Bytes that the client sent after its request belong to the tunnel.
    guard input.readableBytes > 0 else { return .wait }
    defer { input = ByteBuffer() }
    return .tunnel(input, to: upstream)
  }

  /// Bytes of the upstream pass to the client through a tunnel.
  mutating func tunnelRead(_ count: Int, at now: NIODeadline) {
    if inputHasEnded { lastActivity = now }
    exchange.answerBytes += count
  }

  /// The upstream has closed its side of a tunnel.
  mutating func tunnelEnded() -> ConnectionAction { .linger }

  /// The gateway's own response has begun: its final head.
  /// - Parameters:
  ///   - length: the length of its body; nil if it is unknown.
  ///   - wantsClose: whether the response asks to close the connection.
  mutating func ownAnswerBegan(status: Int, length: Int?, wantsClose: Bool) {
    exchange.answerHasBegun = true
    exchange.status = status
    exchange.framing = status == 204 || status == 304 ? .none : framing(length: length)
    exchange.closesAfter = mustClose || wantsClose
  }

  /// The gateway's own response is complete.
  mutating func ownAnswerEnded() -> ConnectionAction {
    exchange.outcome = .own
    return .finish
  }

  /// The gateway is about to refuse the request, or to answer it without its own pages.
  /// - Parameter unread: whether bytes follow whose end is unknown. The connection then closes.
  mutating func prepareToAnswer(unread: Bool) {
    exchange.pending = nil
    // A short request body is read to its end. The connection closes after a long one, and if the client waits for a
    // 100 that will not come.
    let isShort =
      (exchange.bodyLength ?? .max) <= ClientConnection.maxOwnBody && !exchange.expectsContinue
      && !exchange.bytesWereSent
    exchange.closesAfter = mustClose || unread || !exchange.requestIsDone && !isShort
  }

  /// The gateway has written its own response to the request.
  mutating func answered(unread: Bool, at now: NIODeadline) -> ConnectionAction {
    exchange.answerHasBegun = true
    if unread || exchange.closesAfter && !exchange.requestIsDone { return .linger }
    if exchange.requestIsDone { return .finish }
    phase = .refused
    began = now
    return .dropBody
  }
}
