import MoongateCore
import NIOCore
import NIOHTTPTypes

/// One connection of a client: the place where requests are read, judged, and answered in order.
///
/// There is one request at a time. What follows it waits in `input`, bounded by back-pressure, until its answer is
/// complete; so requests for upstreams and for the gateway itself can follow each other in any order.
///
///     reading ── head ──> looking (the store is asked) ──> exchanging (an upstream answers) ──┐
///        ^                    │        │                    own (the gateway's pages answer)  ├──> reading
///        │                    └────────┴── refused (the rest of the body is dropped) ─────────┘      or lingering
///        └── exchanging ── 101 ──> tunnel
package final class ClientConnection: ChannelDuplexHandler {
  package typealias InboundIn = ByteBuffer
  package typealias InboundOut = HTTPRequestPart
  package typealias OutboundIn = HTTPResponsePart
  package typealias OutboundOut = ByteBuffer

  enum Phase {
    case reading, looking, exchanging, own, refused, tunnel, lingering, closed
  }

  /// How much of what comes after the current request is taken off the socket.
  static let mostWaiting = 64 * 1024
  /// The longest body of a request for the gateway itself.
  static let mostOwnBody = 64 * 1024

  let loop: ProxyLoop
  let isSecure: Bool
  /// Whether this is a stream of an HTTP/2 connection, which is counted as a whole.
  let isStream: Bool
  let makeInner: () throws -> Void
  var innerIsThere = false
  /// Nil before it is added to a pipeline or a stream, and after its end.
  var wire: (any ClientWire)?
  /// Where the event loop keeps it; -1: nowhere.
  var placeInLoop = -1

  var phase = Phase.reading
  var input = ByteBuffer()
  var decoder = RequestDecoder()
  /// A head whose judging waits for the store, or whose body for the gateway itself is not complete.
  var waitingHead: RequestHead?
  var exchange = Exchange()
  /// What the access log will say of it.
  var loggedHead = LoggedHead()
  /// Tells callbacks of this exchange from those of one that is over.
  var serial: UInt64 = 0
  var upstream: UpstreamConnection?
  /// Answer bytes that are not written yet, so that a head and a small body are one write.
  var pending: ByteBuffer?
  var ownBody = ByteBuffer()
  /// The session that a tunnel or an event stream lives by.
  var boundSession: CachedSession?
  /// Whether it may have ended, and the store has not said since.
  var sessionIsDoubted = false
  var isAskingForSession = false

  var peer: ClientAddress
  let known: PeerKnowledge
  /// The connection's place among all; nil for a stream, whose connection has it.
  private var admission: Admission?
  /// What the peer's requests count by; nil for trusted proxies.
  var addressUse: AddressUse?
  /// When the last byte moved that we wait for now.
  var lastActivity = NIODeadline.uptimeNanoseconds(0)
  /// When the head, or the body for the gateway itself, began to come; when the last answer of all was out.
  var began = NIODeadline.uptimeNanoseconds(0)
  var lingered = 0
  /// Whether all that was written has left, once nothing more will be.
  var answerIsOut = false
  var isProcessing = false
  var readIsHeld = false
  var inputHasEnded = false
  var isQuiescing = false

  /// - Parameters:
  ///   - admission: the connection's, where it has one already; given back when it ends.
  ///   - known: what other streams of the connection found out.
  init(
    loop: ProxyLoop, isSecure: Bool, isStream: Bool = false, admission: Admission? = nil,
    known: PeerKnowledge = PeerKnowledge(), inner: @escaping () throws -> Void
  ) {
    self.known = known
    self.loop = loop
    self.isSecure = isSecure
    self.isStream = isStream
    self.admission = admission
    makeInner = inner
    peer = .unspecified
  }

  // MARK: ChannelHandler

  package func handlerAdded(context: ChannelHandlerContext) {
    wire = context
    if context.channel.isActive { begin(context) }
  }

  package func channelActive(context: ChannelHandlerContext) {
    begin(context)
    context.fireChannelActive()
  }

  private func begin(_ context: ChannelHandlerContext) {
    guard placeInLoop < 0, phase != .closed else { return }
    lastActivity = loop.now
    peer = context.channel.remoteAddress.flatMap { ClientAddress($0) } ?? .unspecified
    guard let admitted = admission ?? loop.admit(peer) else {
      phase = .closed
      return context.close(promise: nil)
    }
    admission = admitted
    addressUse = admitted.addressUse
    loop.numbers.connections[.http1].open()
    loop.add(self)
  }

  package func handlerRemoved(context: ChannelHandlerContext) { wire = nil }

  package func channelInactive(context: ChannelHandlerContext) {
    ended()
    context.fireChannelInactive()
  }

  package func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  package func channelRead(context: ChannelHandlerContext, data: NIOAny) { received(unwrapInboundIn(data)) }

  package func channelReadComplete(context: ChannelHandlerContext) { receivedAll() }

  package func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { becameWritable() }
    context.fireChannelWritabilityChanged()
  }

  package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case let event as ChannelEvent where event == .inputClosed: inputEnded()
    case is ChannelShouldQuiesceEvent: quiesce()
    default: context.fireUserInboundEventTriggered(event)
    }
  }

  package func read(context: ChannelHandlerContext) { if mayRead() { context.read() } }

  // MARK: what a wire tells

  /// Begins to serve a stream of HTTP/2.
  /// - Parameters:
  ///   - peer: the other end of the stream's connection.
  ///   - use: what the connection's requests count by.
  func begin(on stream: any ClientWire, peer: ClientAddress, use: AddressUse?) {
    wire = stream
    self.peer = peer
    addressUse = use
    lastActivity = loop.now
    loop.add(self)
  }

  /// The connection or the stream is over.
  func ended() {
    noteEnd()
    phase = .closed
    serial &+= 1
    if placeInLoop >= 0, !isStream { loop.numbers.connections[.http1].close() }
    admission?.end()
    admission = nil
    addressUse = nil
    loop.remove(self)
    upstream?.close()
    upstream = nil
    waitingHead = nil
    boundSession = nil
    input = ByteBuffer()
  }

  func received(_ bytes: ByteBuffer) {
    let now = loop.now
    switch phase {
    case .tunnel:
      upstream?.write(bytes)
      return
    case .lingering:
      if answerIsOut { lastActivity = now }
      lingered += bytes.readableBytes
      if lingered > 1024 * 1024 { wire?.end() }
      return
    case .closed: return
    // Attack: the next request, byte by byte, from a client that takes no answer, or to put off the timeout of a silent
    // upstream.
    case .reading: if input.readableBytes == 0 || takesAnswer { lastActivity = now }
    case .exchanging: if !exchange.requestIsDone { lastActivity = now }
    case .looking: break
    case .own, .refused: lastActivity = now
    }
    if input.readableBytes == 0 {
      if phase == .reading { began = now }
      input = bytes
    } else {
      input.writeImmutableBuffer(bytes)
    }
    process()
    // Let go of the buffer, so that the channel can read into it again.
    if input.readableBytes == 0 { input = ByteBuffer() }
  }

  /// All that came in one go was received.
  func receivedAll() { upstream?.flush() }

  /// The client takes bytes again.
  func becameWritable() {
    lastActivity = loop.now
    // While answers waited to be taken, the next head was not looked at.
    if phase == .reading { began = lastActivity }
    upstream?.resumeReading()
    process()
    upstream?.flush()
  }

  /// The gateway drains. What is idle is closed in a moment (`checkTime`): its client may be sending a request now.
  func quiesce() { isQuiescing = true }

  /// The client has sent its last byte. It may still wait for its answer.
  private func inputEnded() {
    inputHasEnded = true
    switch phase {
    case .tunnel:
      lastActivity = loop.now
      upstream?.closeOutput()
    case .lingering: if answerIsOut { wire?.end() }
    case .closed: wire?.end()
    case .reading, .looking, .exchanging, .own, .refused: endWhereUnfinished()
    }
  }

  /// Whoever sends no more is answered what they have sent whole; a request that can not become whole is dropped.
  private func endWhereUnfinished() {
    switch phase {
    case .reading, .refused: wire?.end()
    // Without an upstream yet, the body still waits in `input`.
    case .exchanging: if !exchange.requestIsDone, upstream != nil { wire?.end() }
    case .own: if !exchange.requestIsDone { wire?.end() }
    case .looking, .tunnel, .lingering, .closed: break
    }
  }

  /// Whether more bytes may come now. Where not, `read` of the wire is called later.
  func mayRead() -> Bool {
    readIsHeld = holdsReads
    return !readIsHeld
  }

  /// Back-pressure: what the upstream does not take is not read from the client.
  private var holdsReads: Bool {
    if input.readableBytes >= Self.mostWaiting { return true }
    guard let upstream, !exchange.requestIsDone || phase == .tunnel else { return false }
    return !upstream.isWritable
  }

  /// Lets a read that was held back go on.
  func resumeReading() {
    guard readIsHeld, !holdsReads else { return }
    readIsHeld = false
    wire?.read()
  }

  // MARK: reading

  /// Goes on with the request at hand as far as the bytes reach.
  func process() {
    guard !isProcessing else { return }
    isProcessing = true
    var goesOn = true
    while goesOn {
      switch phase {
      case .reading: goesOn = readHead()
      case .exchanging: goesOn = forwardBody()
      case .own: goesOn = collectOwnBody()
      case .refused: goesOn = dropBody()
      case .looking, .tunnel, .lingering, .closed: goesOn = false
      }
    }
    isProcessing = false
    if inputHasEnded { endWhereUnfinished() }
    resumeReading()
  }

  private func readHead() -> Bool {
    // Attack: requests without end from a client that reads no answer. The next one waits until the last answer is
    // taken.
    guard input.readableBytes > 0, takesAnswer else { return false }
    let head: RequestHead
    do throws(MessageFault) {
      guard let found = try decoder.next(&input, spare: &loop.spareFields) else { return false }
      head = found
    } catch {
      beginRecord(nil)
      refuse(error)
      return false
    }
    serial &+= 1
    exchange = Exchange(head)
    beginRecord(head)
    receive(head, answer: nil)
    if waitingHead == nil {
      // The array goes to the next head.
      var fields = head.fields
      fields.removeAll(keepingCapacity: true)
      loop.spareFields = fields
    }
    return true
  }

  func sendContinue() {
    wire?.send(ByteBuffer(staticString: "HTTP/1.1 100 Continue\r\n\r\n"))
    wire?.flush()
  }

  /// A refusal for bytes that are no request; nothing after them can be read.
  func refuse(_ fault: MessageFault) {
    exchange.keepsAlive = false
    exchange.requestIsDone = true
    switch fault {
    case .malformed(let reason): refuse(.badRequest, reason: reason, unread: true)
    case .headTooLarge: refuse(.headersTooLarge, unread: true)
    case .versionNotSupported: refuse(.versionNotSupported, unread: true)
    case .methodNotAllowed: refuse(.methodNotAllowed, unread: true)
    }
  }

  private func dropBody() -> Bool {
    do throws(MessageFault) {
      while true {
        switch try exchange.body.next(&input) {
        case .data: continue
        case .incomplete: return false
        case .end:
          exchange.requestIsDone = true
          finish()
          return true
        }
      }
    } catch {
      linger()
      return false
    }
  }

  // MARK: ends

  /// The answer is written and the request read: on to the next one, or an end.
  func finish() {
    noteEnd()
    upstream = nil
    boundSession = nil
    sessionIsDoubted = false
    exchange.route = nil
    exchange.session = nil
    exchange.upstreamHead = ByteBuffer()
    wire?.flush()
    guard phase != .closed else { return }
    if exchange.closesAfter || inputHasEnded && input.readableBytes == 0 {
      if input.readableBytes == 0, exchange.requestIsDone {
        phase = .lingering
        closeWhenWritten()
      } else {
        linger()
      }
      return
    }
    phase = .reading
    lastActivity = loop.now
    began = lastActivity
    process()
  }

  /// Closes so that the client can still read the answer: with bytes unread, a plain close would make the system answer
  /// them with a reset that overtakes it.
  func linger() {
    guard phase != .closed, phase != .lingering else { return }
    noteEnd()
    phase = .lingering
    lastActivity = loop.now
    input = ByteBuffer()
    whenWritten { connection in
      if connection.inputHasEnded {
        connection.wire?.end()
      } else {
        connection.wire?.endOutput()
        connection.resumeReading()
      }
    }
  }

  /// Closes when the client has taken what was written: closing drops what still waits here.
  private func closeWhenWritten() { whenWritten { $0.wire?.end() } }

  private func whenWritten(_ body: @escaping (ClientConnection) -> Void) {
    guard let wire else { return }
    let written = wire.eventLoop.makePromise(of: Void.self)
    answerIsOut = false
    wire.send(ByteBuffer(), promise: written)
    wire.flush()
    written.futureResult.assumeIsolated().whenComplete { [weak self] _ in
      guard let self, self.phase == .lingering else { return }
      self.answerIsOut = true
      self.lastActivity = self.loop.now
      self.began = self.lastActivity
      body(self)
    }
  }

  /// Closes at once, with whatever is unfinished: the client must not take a part for the whole.
  func abort() {
    guard phase != .closed else { return }
    noteEnd()
    pending = nil
    phase = .closed
    wire?.end()
  }
}

extension ClientAddress {
  /// The address of a socket; nil for one that has none.
  init?(_ address: SocketAddress) {
    guard let text = address.ipAddress, let parsed = IPAddressText.parse(text.prefix { $0 != "%" }.utf8.map { $0 })
    else { return nil }
    self = parsed
  }
}
