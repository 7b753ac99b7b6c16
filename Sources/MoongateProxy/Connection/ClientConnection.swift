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
  var context: ChannelHandlerContext?
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
  var peerText: [UInt8] = []
  /// The connection's place among all; nil for a stream, whose connection has it.
  private var admission: Admission?
  /// What the peer's requests count by; nil for trusted proxies.
  var addressUse: AddressUse?
  var lastHost: RequestHost?
  /// The host that a proxy asked about last.
  var lastAskedHost: RequestHost?
  /// Whether the peer is a trusted proxy, and of which generation that is known.
  var trust: (version: UInt64, isTrusted: Bool)?
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

  /// - Parameter admission: the connection's, where it has one already; given back when it ends.
  init(
    loop: ProxyLoop, isSecure: Bool, isStream: Bool = false, admission: Admission? = nil,
    inner: @escaping () throws -> Void
  ) {
    self.loop = loop
    self.isSecure = isSecure
    self.isStream = isStream
    self.admission = admission
    makeInner = inner
    peer = .unspecified
  }

  // MARK: ChannelHandler

  package func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    if context.channel.isActive { begin(context) }
  }

  package func channelActive(context: ChannelHandlerContext) {
    begin(context)
    context.fireChannelActive()
  }

  private func begin(_ context: ChannelHandlerContext) {
    guard placeInLoop < 0, phase != .closed else { return }
    lastActivity = loop.now
    // Asked of the channel: a stream's pipeline has no socket to ask.
    peer = context.channel.remoteAddress.flatMap { ClientAddress($0) } ?? .unspecified
    if !isStream {
      guard let admitted = admission ?? loop.admit(peer) else {
        phase = .closed
        return context.close(promise: nil)
      }
      admission = admitted
      addressUse = admitted.addressUse
      loop.numbers.connections[.http1].open()
    }
    loop.add(self)
  }

  package func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  package func channelInactive(context: ChannelHandlerContext) {
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
    context.fireChannelInactive()
  }

  package func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let bytes = unwrapInboundIn(data)
    let now = loop.now
    switch phase {
    case .tunnel:
      upstream?.write(bytes)
      return
    case .lingering:
      if answerIsOut { lastActivity = now }
      lingered += bytes.readableBytes
      if lingered > 1024 * 1024 { context.close(promise: nil) }
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

  package func channelReadComplete(context: ChannelHandlerContext) { upstream?.flush() }

  package func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable {
      lastActivity = loop.now
      // While answers waited to be taken, the next head was not looked at.
      if phase == .reading { began = lastActivity }
      upstream?.resumeReading()
      process()
      upstream?.flush()
    }
    context.fireChannelWritabilityChanged()
  }

  package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case let event as ChannelEvent where event == .inputClosed: inputEnded(context)
    case is ChannelShouldQuiesceEvent:
      // What is idle is closed in a moment (`checkTime`): its client may be sending a request now.
      isQuiescing = true
    default: context.fireUserInboundEventTriggered(event)
    }
  }

  /// The client has sent its last byte. It may still wait for its answer.
  private func inputEnded(_ context: ChannelHandlerContext) {
    inputHasEnded = true
    switch phase {
    case .tunnel:
      lastActivity = loop.now
      upstream?.closeOutput()
    case .lingering: if answerIsOut { context.close(promise: nil) }
    case .closed: context.close(promise: nil)
    case .reading, .looking, .exchanging, .own, .refused: endWhereUnfinished()
    }
  }

  /// Whoever sends no more is answered what they have sent whole; a request that can not become whole is dropped.
  private func endWhereUnfinished() {
    switch phase {
    case .reading, .refused: context?.close(promise: nil)
    // Without an upstream yet, the body still waits in `input`.
    case .exchanging: if !exchange.requestIsDone, upstream != nil { context?.close(promise: nil) }
    case .own: if !exchange.requestIsDone { context?.close(promise: nil) }
    case .looking, .tunnel, .lingering, .closed: break
    }
  }

  package func read(context: ChannelHandlerContext) {
    if holdsReads {
      readIsHeld = true
    } else {
      context.read()
    }
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
    context?.read()
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

  /// A refusal for bytes that are no request; nothing after them can be read.
  func refuse(_ fault: MessageFault) {
    exchange.keepsAlive = false
    exchange.requestIsDone = true
    switch fault {
    case .malformed(let reason): refuse(.badRequest, detail: ["reason": reason], unread: true)
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
    context?.flush()
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
        connection.context?.close(promise: nil)
      } else {
        connection.context?.close(mode: .output, promise: nil)
        connection.resumeReading()
      }
    }
  }

  /// Closes when the client has taken what was written: closing drops what still waits here.
  private func closeWhenWritten() { whenWritten { $0.context?.close(promise: nil) } }

  private func whenWritten(_ body: @escaping (ClientConnection) -> Void) {
    guard let context else { return }
    let written = context.eventLoop.makePromise(of: Void.self)
    answerIsOut = false
    context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
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
    context?.close(promise: nil)
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
