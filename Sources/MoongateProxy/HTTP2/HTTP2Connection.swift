import MoongateCore
import NIOCore
import NIOHTTP2

/// One HTTP/2 connection of a client: its bounds, its idleness, its end. Its requests are streams, each of them a
/// channel with a `ClientConnection` of its own.
final class HTTP2Connection: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame

  private static let idleTime: TimeAmount = .seconds(60)
  /// For the last words of a connection that is being ended: who never answers them is cut off.
  private static let graceTime: TimeAmount = .seconds(5)
  private static let look: TimeAmount = .seconds(1)
  private static let window = 1024 * 1024

  private let loop: ProxyLoop
  private let admission: Admission
  private var streams = 0
  private var idleSince = NIODeadline.uptimeNanoseconds(0)
  private var isCounted = false
  private var isQuiescing = false
  private var timer: RepeatedTask?

  private init(loop: ProxyLoop, admission: Admission) {
    self.loop = loop
    self.admission = admission
  }

  /// Puts in place what speaks HTTP/2 on a channel whose peer agreed to.
  /// - Parameter admission: the connection's; given back when it ends.
  static func add(
    to channel: any Channel, loop: ProxyLoop, admission: Admission,
    inner: @escaping @Sendable (any Channel) throws -> Void
  ) throws {
    let connection = HTTP2Connection(loop: loop, admission: admission)
    let eventLoop = channel.eventLoop
    // Says GOAWAY when the connection has been idle or the gateway drains, in the two steps that lose no request.
    let manager = NIOHTTP2ServerConnectionManagementHandler(
      eventLoop: eventLoop,
      configuration: .init(
        maxIdleTime: idleTime, maxAge: nil, maxGraceTime: nil,
        keepalive: .init(pingInterval: .seconds(60), ackTimeout: .seconds(20))))
    let bound = NIOLoopBound(connection, eventLoop: eventLoop)
    let delegate = StreamCount(manager: manager.http2StreamDelegate, connection: bound)
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(EarlySettings())
    _ = try pipeline.configureHTTP2Pipeline(
      mode: .server, connectionConfiguration: connectionBounds, streamConfiguration: streamBounds,
      streamDelegate: delegate
    ) { stream in
      stream.eventLoop.makeCompletedFuture {
        let client = ClientConnection(loop: bound.value.loop, isSecure: true, isStream: true) { try inner(stream) }
        client.addressUse = bound.value.admission.addressUse
        let handlers: [any ChannelHandler] = [StreamFraming(), client]
        try stream.pipeline.syncOperations.addHandlers(handlers)
      }
    }
    try pipeline.addHandler(manager)
    try pipeline.addHandler(connection)
    // The channel has been active since before the handshake: this starts the manager's clocks.
    manager.channelActive(context: try pipeline.context(handler: manager))
  }

  private static var connectionBounds: NIOHTTP2Handler.ConnectionConfiguration {
    var bounds = NIOHTTP2Handler.ConnectionConfiguration()
    bounds.initialSettings = [
      HTTP2Setting(parameter: .maxConcurrentStreams, value: 128),
      HTTP2Setting(parameter: .initialWindowSize, value: window),
      // Heads over 32 KiB get their 431; what is far over that is not even decoded.
      HTTP2Setting(parameter: .maxHeaderListSize, value: 128 * 1024),
    ]
    bounds.targetWindowSize = 4 * window
    // 128 KiB come in eight full frames. Attack: CONTINUATION frames without end.
    bounds.maximumSequentialContinuationFrames = 8
    // Attack: frames that cost us an answer each, from a client that does not take them.
    bounds.maximumBufferedControlFrames = 1000
    return bounds
  }

  private static var streamBounds: NIOHTTP2Handler.StreamConfiguration {
    var bounds = NIOHTTP2Handler.StreamConfiguration()
    bounds.targetWindowSize = window
    bounds.outboundBufferSizeHighWatermark = SocketBuffers.writeLimit
    bounds.outboundBufferSizeLowWatermark = SocketBuffers.writeLimit / 2
    // Attack: CVE-2023-44487. A stream that is reset costs its opener nothing; 200 of them in 30 s end the connection.
    bounds.streamResetFrameRateLimit.maximumCount = 200
    bounds.streamResetFrameRateLimit.windowLength = .seconds(30)
    return bounds
  }

  // MARK: ChannelHandler

  func channelActive(context: ChannelHandlerContext) {
    guard !isCounted else { return }
    loop.numbers.connections[.http2].open()
    isCounted = true
    idleSince = loop.now
    let bound = NIOLoopBound((connection: self, context: context), eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleRepeatedTask(initialDelay: Self.look, delay: Self.look) { _ in
      bound.value.connection.checkTime(bound.value.context)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    timer?.cancel()
    timer = nil
    if isCounted { loop.numbers.connections[.http2].close() }
    admission.end()
    context.fireChannelInactive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is ChannelShouldQuiesceEvent { isQuiescing = true }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // A stream's own fault was answered with a reset of that stream; anything else ends the connection.
    if error is NIOHTTP2Errors.StreamError { return }
    context.close(promise: nil)
  }

  /// Attack: a client that never answers our last words would keep its connection for ever.
  private func checkTime(_ context: ChannelHandlerContext) {
    guard streams == 0 else { return }
    let idle = loop.now - idleSince
    if idle >= Self.idleTime + Self.graceTime || isQuiescing && idle >= Self.graceTime { context.close(promise: nil) }
  }

  fileprivate func streamOpened() { streams += 1 }

  fileprivate func streamClosed() {
    streams -= 1
    if streams == 0 { idleSince = loop.now }
  }
}

/// Tells the connection and its manager of streams; called on the event loop.
private struct StreamCount: NIOHTTP2StreamDelegate {
  let manager: NIOHTTP2ServerConnectionManagementHandler.HTTP2StreamDelegate
  let connection: NIOLoopBound<HTTP2Connection>

  func streamCreated(_ id: HTTP2StreamID, channel: any Channel) {
    connection.value.streamOpened()
    manager.streamCreated(id, channel: channel)
  }

  func streamClosed(_ id: HTTP2StreamID, channel: any Channel) {
    connection.value.streamClosed()
    manager.streamClosed(id, channel: channel)
  }
}
