import MoongateCore
import NIOCore
import NIOHTTP2

/// One HTTP/2 connection of a client, with its streams, limits and idle timeout.
///
/// The library handles frames, header compression, the states of the connection and its streams, flow control of
/// responses, and limits on what a client may send. This handler keeps the table of streams and decides when to flush.
/// Each stream is the wire of a `ClientConnection`.
///
/// Frames wait in `outbox` and go to the library only from `flushNow`. The library calls this handler while it writes,
/// so a frame written from such a call could end up inside another one.
///
/// Nothing refers to this object weakly: that would make every retain and release of it slower, several times a
/// request. Its references to streams, and theirs to it, are cut when they end.
final class HTTP2Connection: ChannelDuplexHandler {
  typealias InboundIn = HTTP2Frame
  typealias OutboundIn = HTTP2Frame
  typealias OutboundOut = HTTP2Frame

  private static let interval: TimeAmount = .seconds(1)
  private static let connectionWindow = 4 * 1024 * 1024
  /// The maximum number of concurrent streams, and how many the library accepts, so that those between can be refused.
  private static let maxStreams = 128
  private static let maxLibraryStreams = 1024
  /// The library ignores frames of this many streams that it has reset. A frame of an earlier one ends the connection.
  private static let maxResetStreams = 1024
  /// For how long, and for how many streams, the library waits for the client's last frames after a reset.
  private static let earlyResetTime: TimeAmount = .seconds(3)
  private static let maxEarlyResets = 512

  private let loop: ProxyLoop
  private let permit: ConnectionPermit
  private let inner: @Sendable (any Channel) throws -> Void
  private let peer: ClientAddress
  private let adapter: FrameAdapter
  private let manager: NIOHTTP2ServerConnectionManagementHandler
  private let delegate: NIOHTTP2ServerConnectionManagementHandler.HTTP2StreamDelegate
  private var context: ChannelHandlerContext?
  /// The channel of `context`, which takes longer to find there.
  private var channel: (any Channel)?
  private var streams: [HTTP2StreamID: HTTP2Stream] = [:]
  /// Streams that are reset for the client and not yet for the library, the oldest first, and ended ones. The client
  /// may send trailers before it knows of the reset.
  private var earlyResets: [(stream: HTTP2Stream, at: NIODeadline)] = []
  /// How many streams of the library are reset for the client.
  private var openResets = 0
  private var idleSince = NIODeadline.uptimeNanoseconds(0)
  /// Whether the connection has begun and not ended. It is counted then.
  private var isOpen = false
  /// Whether the connection is being closed. Further frames are ignored.
  private var isEnding = false
  private var timer: RepeatedTask?

  /// The streams that received a frame in the current read.
  private var read: [HTTP2Stream] = []
  private var isReading = false
  /// When the manager last received a frame, and whether it still needs the end of the read.
  private var managerHeard = NIODeadline.uptimeNanoseconds(0)
  private var managerReads = false

  /// Frames that wait for the next flush.
  private var outbox: [(stream: HTTP2Stream, payload: HTTP2Frame.FramePayload)] = []
  /// Streams whose windows may need an update in the next flush.
  private var opening: [HTTP2Stream] = []
  /// The connection's window for the client's data, as the library last reported it.
  private var connectionWindow = HTTP2Connection.connectionWindow
  /// Response frames that the library has written since the last `noteWritten`.
  private var written: [(id: HTTP2StreamID, bytes: Int, isLast: Bool)] = []
  private var isFlushing = false
  private var flushIsPlanned = false
  var spareFields: [HeadField] = []
  var spareWindow = HTTP2Connection.connectionWindow
  private let known = PeerKnowledge()

  private init(
    loop: ProxyLoop, permit: ConnectionPermit,
    manager: NIOHTTP2ServerConnectionManagementHandler,
    inner: @escaping @Sendable (any Channel) throws -> Void
  ) {
    self.loop = loop
    self.permit = permit
    peer = permit.peer.address
    known.mayForward = permit.peer.mayForward
    adapter = FrameAdapter(maxStreams: Self.maxStreams)
    self.manager = manager
    self.inner = inner
    delegate = manager.http2StreamDelegate
  }

  /// Adds the HTTP/2 handlers to a channel that negotiated HTTP/2.
  /// - Parameter permit: the connection's permit; released when the connection ends.
  static func add(
    to channel: any Channel, loop: ProxyLoop, permit: ConnectionPermit,
    inner: @escaping @Sendable (any Channel) throws -> Void
  ) throws {
    // Sends the two GOAWAY frames of a graceful shutdown (RFC 9113 section 6.8). `checkTime` measures the idle time:
    // the manager would reset a timer after every request.
    let manager = NIOHTTP2ServerConnectionManagementHandler(
      eventLoop: channel.eventLoop,
      configuration: .init(
        maxIdleTime: nil, maxAge: nil, maxGraceTime: nil,
        keepalive: .init(pingInterval: .seconds(60), ackTimeout: .seconds(20))))
    let connection = HTTP2Connection(loop: loop, permit: permit, manager: manager, inner: inner)
    let frames = NIOHTTP2Handler(
      mode: .server, frameDelegate: WrittenFrames(connection: connection), connectionConfiguration: connectionBounds,
      streamConfiguration: streamBounds)
    let pipeline = channel.pipeline.syncOperations
    let handlers: [any ChannelHandler] = [WriteGathering(), connection.adapter, frames, connection, manager]
    try pipeline.addHandlers(handlers)
    // The channel became active before the handshake. This starts the manager's timers and ours.
    manager.channelActive(context: try pipeline.context(handler: manager))
    connection.begin()
  }

  private static var connectionBounds: NIOHTTP2Handler.ConnectionConfiguration {
    var bounds = NIOHTTP2Handler.ConnectionConfiguration()
    bounds.initialSettings = [
      HTTP2Setting(parameter: .maxConcurrentStreams, value: maxLibraryStreams),
      HTTP2Setting(parameter: .initialWindowSize, value: HTTP2Stream.firstWindow),
      // Heads over 32 KiB are answered with 431. Heads far over that are not decoded.
      HTTP2Setting(parameter: .maxHeaderListSize, value: 128 * 1024),
    ]
    // 128 KiB need eight full frames. Attack: an endless sequence of CONTINUATION frames.
    bounds.maximumSequentialContinuationFrames = 8
    // Attack: frames that each require a reply, from a client that does not read the replies.
    bounds.maximumBufferedControlFrames = 1000
    bounds.maximumRecentlyResetStreams = maxResetStreams
    // Attack: CVE-2019-9518. The library counts them from the last HEADERS or the last end of a stream on.
    bounds.maximumSequentialEmptyDataFrames = 100
    // A rate bounds errors of streams (`streamBounds`). A total would end the connections of proxies, which stay open.
    bounds.maximumConnectionGlitches = .max
    // At its own limit, the library would end all streams of the connection. `count` limits the rate.
    bounds.controlFrameRateLimit.windowLength = .nanoseconds(0)
    return bounds
  }

  private static var streamBounds: NIOHTTP2Handler.StreamConfiguration {
    var bounds = NIOHTTP2Handler.StreamConfiguration()
    bounds.streamResetFrameRateLimit.windowLength = .nanoseconds(0)
    bounds.streamErrorRateLimit.windowLength = .nanoseconds(0)
    return bounds
  }

  private func begin() {
    guard !isOpen, let context else { return }
    loop.metrics.connections[.http2].open()
    isOpen = true
    idleSince = loop.now
    managerHeard = idleSince
    let bound = NIOLoopBound((connection: self, context: context), eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleRepeatedTask(initialDelay: Self.interval, delay: Self.interval) { _ in
      bound.value.connection.checkTime(bound.value.context)
    }
  }

  // MARK: ChannelHandler

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    channel = context.channel
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    channel = nil
  }

  func channelInactive(context: ChannelHandlerContext) {
    timer?.cancel()
    timer = nil
    endStreams()
    if isOpen { loop.metrics.connections[.http2].close() }
    isOpen = false
    permit.end()
    context.fireChannelInactive()
  }

  private func endStreams() {
    outbox = []
    opening = []
    written = []
    earlyResets = []
    let left = streams
    streams = [:]
    for stream in left.values { stream.closed() }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isEnding else { return }
    let frame = unwrapInboundIn(data)
    isReading = true
    passToManager(context, frame, data)
    switch frame.payload {
    case .headers, .data:
      guard let stream = streams[frame.streamID] ?? open(frame) else { return }
      stream.receive(frame.payload)
      if read.last !== stream { read.append(stream) }
    // The library reports their effect on a stream as an event.
    case .rstStream: count(.resets)
    case .ping, .settings: count(.controlFrames)
    case .windowUpdate, .priority, .pushPromise, .goAway, .alternativeService, .origin: break
    }
  }

  /// Passes frames to the manager, which closes connections without traffic. It needs every PING. Of other frames it
  /// gets one per second, because each frame resets two timers.
  private func passToManager(_ context: ChannelHandlerContext, _ frame: HTTP2Frame, _ data: NIOAny) {
    let now = loop.now
    let isMeant = if case .ping = frame.payload { true } else { false }
    guard isMeant || now - managerHeard >= Self.interval else { return }
    managerHeard = now
    managerReads = true
    context.fireChannelRead(data)
  }

  /// Opens a stream for HEADERS of a new one.
  /// - Returns: nil if there is nothing to receive.
  private func open(_ frame: HTTP2Frame) -> HTTP2Stream? {
    // A stream that began after the end of the connection would never be closed.
    guard case .headers = frame.payload, isOpen, let channel, adapter.shutdown.open(frame.streamID) else { return nil }
    let isRefused = streams.count - openResets >= Self.maxStreams
    let stream = HTTP2Stream(frame.streamID, transport: self)
    streams[frame.streamID] = stream
    delegate.streamCreated(frame.streamID, channel: channel)
    if isRefused {
      stream.reset(.refusedStream)
      return nil
    }
    let client = ClientConnection(loop: loop, isSecure: true, streamOf: known) { [unowned stream] in
      try stream.makeInner()
    }
    stream.serve(by: client)
    client.begin(on: stream, peer: peer, use: permit.addressUse)
    return stream
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    var streams = read.takeAll()
    for stream in streams { stream.receivedAll() }
    read.reuseMemory(of: &streams)
    if !adapter.malformedPriorities.isEmpty { resetMalformedPriorities() }
    isReading = false
    flushNow()
    if managerReads {
      managerReads = false
      context.fireChannelReadComplete()
    }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    noteWritten()
    if isWritable { for stream in Array(streams.values) { stream.writabilityChanged() } }
    flush()
    context.fireChannelWritabilityChanged()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    // Every request has this event. Comparing types takes a fraction of the casts below.
    if type(of: event) == NIOHTTP2StreamCreatedEvent.self { return }
    switch event {
    case let event as StreamClosedEvent: streamClosed(event.streamID)
    case let event as NIOHTTP2WindowUpdatedEvent: windowChanged(event)
    case is NIOHTTP2BulkStreamWindowChangeEvent: break
    case is ChannelShouldQuiesceEvent:
      let isToldByManager = adapter.shutdown.quiesce()
      for stream in Array(streams.values) { stream.quiesce() }
      if isToldByManager { context.fireUserInboundEventTriggered(event) }
    default: context.fireUserInboundEventTriggered(event)
    }
  }

  /// Ends the connection unless the error concerns one stream only: the other streams, such as downloads of other users
  /// of a proxy, go on then (RFC 9113 section 5.4.2).
  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let error = error as? NIOHTTP2Errors.StreamError {
      // A frame of this stream could not be written.
      streams[error.streamID]?.reset(.internalError)
    } else if adapter.shutdown.hasToldError || !(error is any NIOHTTP2Error) {
      close(context)
    } else if Self.concernsStream(error) {
      if !isFlushing { count(.errors) }
    } else {
      adapter.shutdown.fail(.internalError)
      flush()
    }
  }

  /// Whether the library has reset a stream because of the error, or has dropped a frame of a stream that is closed
  /// already. Some of these errors can also be of the connection: the library has sent GOAWAY then.
  private static func concernsStream(_ error: any Error) -> Bool {
    switch error {
    case is NIOHTTP2Errors.MissingPseudoHeader, is NIOHTTP2Errors.DuplicatePseudoHeader,
      is NIOHTTP2Errors.PseudoHeaderAfterRegularHeader, is NIOHTTP2Errors.UnknownPseudoHeader,
      is NIOHTTP2Errors.UnsupportedPseudoHeader, is NIOHTTP2Errors.InvalidPseudoHeaders,
      is NIOHTTP2Errors.InvalidPseudoHeaderValue, is NIOHTTP2Errors.EmptyPathHeader,
      is NIOHTTP2Errors.InvalidHTTP2HeaderFieldName, is NIOHTTP2Errors.InvalidHTTP2HeaderFieldValue,
      is NIOHTTP2Errors.ForbiddenHeaderField, is NIOHTTP2Errors.TrailersWithoutEndStream,
      is NIOHTTP2Errors.ContentLengthViolated, is NIOHTTP2Errors.ContentLengthHeadersMismatch,
      is NIOHTTP2Errors.ContentLengthHeaderNegative, is NIOHTTP2Errors.ContentLengthHeaderMalformedValue,
      is NIOHTTP2Errors.InvalidWindowIncrementSize, is NIOHTTP2Errors.InvalidFlowControlWindowSize,
      is NIOHTTP2Errors.FlowControlViolation, is NIOHTTP2Errors.BadStreamStateTransition,
      is NIOHTTP2Errors.NoSuchStream:
      true
    default: false
    }
  }

  /// A PRIORITY frame of a wrong length is an error of its stream (RFC 9113 section 6.3).
  private func resetMalformedPriorities() {
    for id in adapter.takeMalformedPriorities() { streams[HTTP2StreamID(Int(id))]?.reset(.frameSizeError) }
  }

  private func close(_ context: ChannelHandlerContext) {
    guard !isEnding else { return }
    isEnding = true
    endStreams()
    context.close(promise: nil)
  }

  /// Writes the manager's frames. GOAWAY gets a separate flush: some clients ignore frames that arrive with it.
  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    let frame = unwrapOutboundIn(data)
    context.write(data, promise: promise)
    if case .goAway = frame.payload { context.flush() }
  }

  private func streamClosed(_ id: HTTP2StreamID) {
    adapter.forget(id)
    guard let stream = streams.removeValue(forKey: id) else { return }
    if stream.isResetEarly { openResets -= 1 }
    stream.closed()
    if streams.isEmpty { idleSince = loop.now }
    if let channel { delegate.streamClosed(id, channel: channel) }
  }

  private func windowChanged(_ event: NIOHTTP2WindowUpdatedEvent) {
    guard let size = event.inboundWindowSize else { return }
    if event.streamID != .rootStream {
      streams[event.streamID]?.windowChanged(to: size)
    } else {
      connectionWindow = size
      if needsConnectionWindow { flush() }
    }
  }

  private var needsConnectionWindow: Bool { connectionWindow <= Self.connectionWindow / 2 }

  private func checkTime(_ context: ChannelHandlerContext) {
    if !earlyResets.isEmpty {
      finishResets(before: loop.now - Self.earlyResetTime, context)
      context.flush()
    }
    guard streams.isEmpty else { return }
    switch adapter.shutdown.action(afterIdle: loop.now - idleSince) {
    case .close: close(context)
    // Only the manager is behind this handler.
    case .shutDown: context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    case nil: break
    }
  }

  // MARK: writing

  /// Schedules a flush: at the end of the current read, or in the next turn of the event loop.
  func flush() {
    guard !isReading, !isFlushing, !flushIsPlanned, let context else { return }
    flushIsPlanned = true
    context.eventLoop.assumeIsolated().execute {
      self.flushIsPlanned = false
      self.flushNow()
    }
  }

  private func flushNow() {
    guard !isFlushing, let context else { return }
    isFlushing = true
    defer { isFlushing = false }
    noteWritten()
    while adapter.shutdown.failure == nil, !isEnding, !outbox.isEmpty || !opening.isEmpty || needsConnectionWindow {
      writeWindows(context)
      writeFrames(context)
      context.flush()
      noteWritten()
    }
    guard !isEnding else { return }
    switch adapter.shutdown.nextGoAway() {
    case .failure(let code, let last):
      write(.goAway(lastStreamID: last, errorCode: code, opaqueData: nil), .rootStream, context)
      context.flush()
      close(context)
    // `checkTime` closes the connection after the last stream.
    case .noMoreStreams(let last):
      write(.goAway(lastStreamID: last, errorCode: .enhanceYourCalm, opaqueData: nil), .rootStream, context)
      context.flush()
    case nil: break
    }
  }

  private func writeWindows(_ context: ChannelHandlerContext) {
    if needsConnectionWindow {
      let bytes = Self.connectionWindow - connectionWindow
      connectionWindow += bytes
      write(.windowUpdate(windowSizeIncrement: bytes), .rootStream, context)
    }
    var streams = opening.takeAll()
    for stream in streams {
      if let bytes = stream.windowUpdate() {
        write(.windowUpdate(windowSizeIncrement: bytes), stream.id, context)
      }
    }
    opening.reuseMemory(of: &streams)
  }

  private func writeFrames(_ context: ChannelHandlerContext) {
    var frames = outbox.takeAll()
    // Attack: a request and its reset in one read. To the library, a frame on a closed stream is a connection error,
    // which would end all other streams.
    for (stream, payload) in frames where !stream.isOver {
      if case .rstStream(let code) = payload, stream.mayBeResetEarly, isWritable {
        resetEarly(stream, code, context)
      } else {
        write(payload, stream.id, context)
      }
    }
    outbox.reuseMemory(of: &frames)
  }

  /// Resets a stream for the client, and later for the library, which then accepts no trailers of it.
  private func resetEarly(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode, _ context: ChannelHandlerContext) {
    stream.isResetEarly = true
    openResets += 1
    adapter.reset(stream.id, code)
    earlyResets.append((stream, loop.now))
    if earlyResets.count > Self.maxEarlyResets { finishResets(before: .uptimeNanoseconds(0), context) }
  }

  /// Resets streams for the library: those before the time, and the oldest if they are too many.
  private func finishResets(before time: NIODeadline, _ context: ChannelHandlerContext) {
    let count = earlyResets.firstIndex { $0.at >= time } ?? earlyResets.count
    let surplus = earlyResets.count > Self.maxEarlyResets ? earlyResets.count / 2 : 0
    let over = earlyResets.prefix(max(count, surplus))
    earlyResets.removeFirst(over.count)
    for (stream, _) in over where !stream.isOver { write(.rstStream(.cancel), stream.id, context) }
  }

  private func write(_ payload: HTTP2Frame.FramePayload, _ id: HTTP2StreamID, _ context: ChannelHandlerContext) {
    context.write(wrapOutboundOut(HTTP2Frame(streamID: id, payload: payload)), promise: nil)
  }

  /// Called by the library while it writes a frame: this must not write.
  fileprivate func wrote(_ frame: HTTP2Frame) {
    switch frame.payload {
    case .data(let data): written.append((frame.streamID, data.data.readableBytes, data.endStream))
    case .headers(let headers): if headers.endStream { written.append((frame.streamID, 0, true)) }
    case .goAway(let last, let code, _): adapter.shutdown.wroteGoAway(last: last, code)
    default: break
    }
  }

  /// Reports to streams which of their frames were written, and that they may write more.
  private func noteWritten() {
    guard !written.isEmpty else { return }
    var frames = written.takeAll()
    for (id, bytes, isLast) in frames {
      guard let stream = streams[id] else { continue }
      let wasFull = stream.isFull
      stream.wrote(bytes, isLast: isLast)
      if wasFull { stream.writabilityChanged() }
    }
    written.reuseMemory(of: &frames)
  }
}

extension HTTP2Connection {
  /// Counts what costs a client less than the gateway. At the second limit that is reached, the connection ends.
  private func count(_ limit: HTTP2Limit) {
    switch adapter.shutdown.count(limit, at: loop.now, isTrusted: isTrusted) {
    case .isWithinLimit: return
    case .endsNewStreams: loop.shared.http2Limits.report(LoggedHTTP2Limit(limit: limit, peer: peer))
    case .endsConnection: break
    }
    flush()
  }

  private var isTrusted: Bool {
    known.mayForward && ForwardedClient.trusts(peer, loop.currentPlan().trustedProxies)
  }
}

extension HTTP2Connection: HTTP2Stream.Transport {
  var eventLoop: any EventLoop { loop.eventLoop }

  var remoteAddress: SocketAddress? { channel?.remoteAddress }

  var isWritable: Bool { channel?.isWritable ?? false }

  func write(_ payload: HTTP2Frame.FramePayload, of stream: HTTP2Stream) { outbox.append((stream, payload)) }

  func openWindow(of stream: HTTP2Stream) {
    opening.append(stream)
    flush()
  }

  func makeInner(_ channel: StreamChannel) throws { try inner(channel) }

  func countError() { count(.errors) }
}

/// Lists whose elements are handled while others are appended.
///
/// A copy with `removeAll(keepingCapacity:)` would allocate memory each time, because the copy still uses the old one.
extension Array {
  /// Removes all elements and returns them.
  fileprivate mutating func takeAll() -> Self {
    var taken: Self = []
    swap(&taken, &self)
    return taken
  }

  /// Takes back the memory of handled elements, unless others have been appended.
  fileprivate mutating func reuseMemory(of taken: inout Self) {
    guard isEmpty else { return }
    taken.removeAll(keepingCapacity: true)
    swap(&taken, &self)
  }
}

/// Reports to a connection which frames the library has written.
///
/// The library's handler keeps it. The connection does not refer to that handler, except through its context while it
/// is in the pipeline.
private struct WrittenFrames: NIOHTTP2FrameDelegate {
  let connection: HTTP2Connection

  func wroteFrame(_ frame: HTTP2Frame) { connection.wrote(frame) }
}
