import MoongateCore
import NIOCore
import NIOHTTP2

/// One HTTP/2 connection of a client: its bounds, its streams, its idleness, its end.
///
/// The library owns frames, header compression, the states of the connection and its streams, flow control of what we
/// send, and the bounds on what a client may send. This owns the table of streams, each of which is the wire of a
/// `ClientConnection`, and when frames leave: all that is written in one turn of the event loop leaves in one flush.
final class HTTP2Connection: ChannelDuplexHandler {
  typealias InboundIn = HTTP2Frame
  typealias OutboundIn = HTTP2Frame
  typealias OutboundOut = HTTP2Frame

  private static let idleTime: TimeAmount = .seconds(60)
  /// For the last words of a connection that is being ended: who never answers them is cut off.
  private static let graceTime: TimeAmount = .seconds(5)
  private static let look: TimeAmount = .seconds(1)
  private static let window = 1024 * 1024
  private static let connectionWindow = 4 * window

  private let loop: ProxyLoop
  private let admission: Admission
  private let inner: @Sendable (any Channel) throws -> Void
  private let peer: ClientAddress
  private let manager: NIOHTTP2ServerConnectionManagementHandler
  private let delegate: NIOHTTP2ServerConnectionManagementHandler.HTTP2StreamDelegate
  private var context: ChannelHandlerContext?
  private var streams: [HTTP2StreamID: HTTP2Stream] = [:]
  private var idleSince = NIODeadline.uptimeNanoseconds(0)
  private var isCounted = false
  private var isQuiescing = false
  private var timer: RepeatedTask?

  /// The streams that got a frame since the channel began to be read.
  private var read: [HTTP2Stream] = []
  private var isReading = false
  /// When the manager last heard that the client lives, and whether it waits for the end of a read.
  private var managerHeard = NIODeadline.uptimeNanoseconds(0)
  private var managerReads = false

  /// What waits for the next flush.
  private var outbox: [(stream: HTTP2Stream, payload: HTTP2Frame.FramePayload)] = []
  /// What the library has written since the last time: whose, how many bytes, whether the last ones.
  private var written: [(id: HTTP2StreamID, bytes: Int, isLast: Bool)] = []
  private var isFlushing = false
  private var flushIsPlanned = false
  /// Whether a frame was written past the outbox since the last flush.
  private var hasWritten = false
  var spareFields: [HeadField] = []
  private let known = PeerKnowledge()

  private init(
    loop: ProxyLoop, admission: Admission, peer: ClientAddress, manager: NIOHTTP2ServerConnectionManagementHandler,
    inner: @escaping @Sendable (any Channel) throws -> Void
  ) {
    self.loop = loop
    self.admission = admission
    self.peer = peer
    self.manager = manager
    self.inner = inner
    delegate = manager.http2StreamDelegate
  }

  /// Puts in place what speaks HTTP/2 on a channel whose peer agreed to.
  /// - Parameter admission: the connection's; given back when it ends.
  static func add(
    to channel: any Channel, loop: ProxyLoop, admission: Admission,
    inner: @escaping @Sendable (any Channel) throws -> Void
  ) throws {
    // Says GOAWAY when it is told that the connection is to end, in the two steps that lose no request. That the
    // connection has been idle is told by `checkTime`: the manager would set a timer anew after every request.
    let manager = NIOHTTP2ServerConnectionManagementHandler(
      eventLoop: channel.eventLoop,
      configuration: .init(
        maxIdleTime: nil, maxAge: nil, maxGraceTime: nil,
        keepalive: .init(pingInterval: .seconds(60), ackTimeout: .seconds(20))))
    let connection = HTTP2Connection(
      loop: loop, admission: admission, peer: channel.remoteAddress.flatMap { ClientAddress($0) } ?? .unspecified,
      manager: manager, inner: inner)
    let frames = NIOHTTP2Handler(
      mode: .server, frameDelegate: WrittenFrames(connection: connection), connectionConfiguration: connectionBounds,
      streamConfiguration: streamBounds)
    let pipeline = channel.pipeline.syncOperations
    let handlers: [any ChannelHandler] = [EarlySettings(), WriteGathering(), frames, connection, manager]
    try pipeline.addHandlers(handlers)
    // The channel has been active since before the handshake: this starts the manager's clocks, and ours.
    manager.channelActive(context: try pipeline.context(handler: manager))
    connection.begin()
  }

  private static var connectionBounds: NIOHTTP2Handler.ConnectionConfiguration {
    var bounds = NIOHTTP2Handler.ConnectionConfiguration()
    bounds.initialSettings = [
      HTTP2Setting(parameter: .maxConcurrentStreams, value: 128),
      HTTP2Setting(parameter: .initialWindowSize, value: window),
      // Heads over 32 KiB get their 431; what is far over that is not even decoded.
      HTTP2Setting(parameter: .maxHeaderListSize, value: 128 * 1024),
    ]
    // 128 KiB come in eight full frames. Attack: CONTINUATION frames without end.
    bounds.maximumSequentialContinuationFrames = 8
    // Attack: frames that cost us an answer each, from a client that does not take them.
    bounds.maximumBufferedControlFrames = 1000
    return bounds
  }

  private static var streamBounds: NIOHTTP2Handler.StreamConfiguration {
    var bounds = NIOHTTP2Handler.StreamConfiguration()
    // Attack: CVE-2023-44487. A stream that is reset costs its opener nothing; 200 of them in 30 s end the connection.
    bounds.streamResetFrameRateLimit.maximumCount = 200
    bounds.streamResetFrameRateLimit.windowLength = .seconds(30)
    return bounds
  }

  private func begin() {
    guard !isCounted, let context else { return }
    loop.numbers.connections[.http2].open()
    isCounted = true
    idleSince = loop.now
    managerHeard = idleSince
    let bound = NIOLoopBound((connection: self, context: context), eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleRepeatedTask(initialDelay: Self.look, delay: Self.look) { _ in
      bound.value.connection.checkTime(bound.value.context)
    }
  }

  // MARK: ChannelHandler

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func channelInactive(context: ChannelHandlerContext) {
    timer?.cancel()
    timer = nil
    outbox = []
    written = []
    let left = streams
    streams = [:]
    for stream in left.values { stream.closed() }
    if isCounted { loop.numbers.connections[.http2].close() }
    isCounted = false
    admission.end()
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let frame = unwrapInboundIn(data)
    isReading = true
    tellManager(context, frame, data)
    guard frame.streamID != .rootStream else { return }
    switch frame.payload {
    case .headers, .data:
      guard let stream = stream(of: frame) else { return }
      stream.receive(frame.payload)
      if read.last !== stream { read.append(stream) }
    case .rstStream, .windowUpdate, .priority, .settings, .pushPromise, .ping, .goAway, .alternativeService, .origin:
      // What these mean for a stream comes as an event.
      break
    }
  }

  /// The manager ends connections whose clients are silent. It hears of every frame that is meant for it, and of one in
  /// a second of the others: each costs it two timers.
  private func tellManager(_ context: ChannelHandlerContext, _ frame: HTTP2Frame, _ data: NIOAny) {
    let now = loop.now
    let isMeant = if case .ping = frame.payload { true } else { false }
    guard isMeant || now - managerHeard >= Self.look else { return }
    managerHeard = now
    managerReads = true
    context.fireChannelRead(data)
  }

  private func stream(of frame: HTTP2Frame) -> HTTP2Stream? {
    if let known = streams[frame.streamID] { return known }
    guard case .headers = frame.payload, let context else { return nil }
    let stream = HTTP2Stream(frame.streamID, outlet: self, window: Self.window)
    let client = ClientConnection(loop: loop, isSecure: true, isStream: true, known: known) { [unowned stream] in
      try stream.makeInner()
    }
    stream.serve(by: client)
    streams[frame.streamID] = stream
    delegate.streamCreated(frame.streamID, channel: context.channel)
    client.begin(on: stream, peer: peer, use: admission.addressUse)
    return stream
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    let streams = read
    read.removeAll(keepingCapacity: true)
    for stream in streams { stream.receivedAll() }
    isReading = false
    flushNow()
    if managerReads {
      managerReads = false
      context.fireChannelReadComplete()
    }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    noteWritten()
    if context.channel.isWritable { for stream in Array(streams.values) { stream.writabilityChanged() } }
    flush()
    context.fireChannelWritabilityChanged()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case let event as StreamClosedEvent: streamClosed(event.streamID, context)
    case let event as NIOHTTP2WindowUpdatedEvent: windowChanged(event, context)
    case is NIOHTTP2StreamCreatedEvent, is NIOHTTP2BulkStreamWindowChangeEvent: break
    case is ChannelShouldQuiesceEvent:
      isQuiescing = true
      for stream in Array(streams.values) { stream.quiesce() }
      context.fireUserInboundEventTriggered(event)
    default: context.fireUserInboundEventTriggered(event)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // A frame of ours that could not be written: its stream can not go on. Anything else ends the connection.
    if let error = error as? NIOHTTP2Errors.StreamError {
      streams[error.streamID]?.reset(.internalError)
    } else {
      context.close(promise: nil)
    }
  }

  /// What the manager says. A GOAWAY leaves by itself: some clients take no frame that they read together with it.
  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    let frame = unwrapOutboundIn(data)
    context.write(data, promise: promise)
    if case .goAway = frame.payload { context.flush() }
  }

  private func streamClosed(_ id: HTTP2StreamID, _ context: ChannelHandlerContext) {
    guard let stream = streams.removeValue(forKey: id) else { return }
    stream.closed()
    if streams.isEmpty { idleSince = loop.now }
    delegate.streamClosed(id, channel: context.channel)
  }

  private func windowChanged(_ event: NIOHTTP2WindowUpdatedEvent, _ context: ChannelHandlerContext) {
    guard let size = event.inboundWindowSize else { return }
    if event.streamID != .rootStream {
      streams[event.streamID]?.windowChanged(to: size)
    } else if size <= Self.connectionWindow / 2 {
      openWindow(of: .rootStream, by: Self.connectionWindow - size)
    }
  }

  private func openWindow(of id: HTTP2StreamID, by bytes: Int) {
    context?.write(
      wrapOutboundOut(HTTP2Frame(streamID: id, payload: .windowUpdate(windowSizeIncrement: bytes))), promise: nil)
    hasWritten = true
    flush()
  }

  /// Attack: a client that never answers our last words would keep its connection for ever.
  private func checkTime(_ context: ChannelHandlerContext) {
    guard streams.isEmpty else { return }
    let idle = loop.now - idleSince
    if idle >= Self.idleTime + Self.graceTime || isQuiescing && idle >= Self.graceTime {
      context.close(promise: nil)
    } else if idle >= Self.idleTime, !isQuiescing {
      // Only the manager is behind this handler.
      context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }
  }

  // MARK: writing

  /// Has all that was written leave: at the end of the read that is going on, or of this turn of the event loop.
  func flush() {
    guard !isReading, !isFlushing, !flushIsPlanned, let context else { return }
    flushIsPlanned = true
    context.eventLoop.assumeIsolated().execute { [weak self] in
      guard let self else { return }
      self.flushIsPlanned = false
      self.flushNow()
    }
  }

  private func flushNow() {
    guard !isFlushing, let context else { return }
    isFlushing = true
    defer { isFlushing = false }
    noteWritten()
    guard hasWritten || !outbox.isEmpty else { return }
    hasWritten = false
    repeat {
      let frames = outbox
      outbox.removeAll(keepingCapacity: true)
      for (stream, payload) in frames {
        context.write(wrapOutboundOut(HTTP2Frame(streamID: stream.id, payload: payload)), promise: nil)
      }
      context.flush()
      noteWritten()
    } while !outbox.isEmpty
  }

  /// A frame has left for the socket. Comes while the library writes: nothing may be written meanwhile.
  fileprivate func wrote(_ frame: HTTP2Frame) {
    switch frame.payload {
    case .data(let data): written.append((frame.streamID, data.data.readableBytes, data.endStream))
    case .headers(let headers): if headers.endStream { written.append((frame.streamID, 0, true)) }
    default: break
    }
  }

  /// Tells streams what of theirs has left, and that they may write more.
  private func noteWritten() {
    guard !written.isEmpty else { return }
    let left = written
    written.removeAll(keepingCapacity: true)
    for (id, bytes, isLast) in left {
      guard let stream = streams[id] else { continue }
      let wasFull = stream.isFull
      stream.left(bytes, isLast: isLast)
      if wasFull { stream.writabilityChanged() }
    }
  }
}

extension HTTP2Connection: HTTP2Stream.Outlet {
  var eventLoop: any EventLoop { loop.eventLoop }

  var allocator: ByteBufferAllocator { context?.channel.allocator ?? ByteBufferAllocator() }

  var isWritable: Bool { context?.channel.isWritable ?? false }

  func write(_ payload: HTTP2Frame.FramePayload, of stream: HTTP2Stream) { outbox.append((stream, payload)) }

  func openWindow(of stream: HTTP2Stream, by bytes: Int) { openWindow(of: stream.id, by: bytes) }

  func makeInner(_ channel: StreamChannel) throws { try inner(channel) }
}

/// Tells a connection which of its frames have left.
private struct WrittenFrames: NIOHTTP2FrameDelegate {
  weak var connection: HTTP2Connection?

  func wroteFrame(_ frame: HTTP2Frame) { connection?.wrote(frame) }
}
