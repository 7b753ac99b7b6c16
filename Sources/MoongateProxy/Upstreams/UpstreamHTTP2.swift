import MoongateCore
import NIOCore
import NIOTLS

/// One HTTP/2 connection to an upstream (RFC 9113), with the streams of many exchanges.
///
/// Frames are read and written here and not by a library: the library takes frames of a stream that was reset for an
/// error of the connection, which would end the exchanges of other users, and costs several times as much.
///
/// All writes of one turn of the event loop are one write to the socket, so that many clients share it.
final class UpstreamHTTP2: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The largest window (RFC 9113 section 6.9.1).
  static let maxWindow = 0x7fff_ffff
  /// The maximum number of concurrent streams, if the upstream allows more.
  private static let maxStreams = 256
  /// The window of the connection, and by how many bytes the windows of all streams may grow.
  private static let connectionWindow = 4 * 1024 * 1024
  private static let firstWindow = 65_535
  /// The number of the last stream. Those after it need another connection.
  private static let lastStream: UInt32 = 1 << 30
  /// A connection on which more streams were cancelled gets no new ones.
  ///
  /// Attack: clients that cancel many requests. Upstreams count resets (CVE-2023-44487), and would end the connection
  /// with the requests of all other users.
  private static let maxCancelled = 100
  /// The maximum number of replies to PING and SETTINGS that an upstream does not read.
  private static let maxReplies = 1000
  /// The maximum number of ended streams that are remembered.
  private static let maxEnded = 64
  /// The time limit for the answer to a PING.
  private static let pingTime: TimeAmount = .seconds(5)
  /// A request that was given up sooner says nothing about the connection.
  private static let doubtTime: TimeAmount = .seconds(1)
  /// A larger buffer is not kept for the next flush.
  private static let kept = 4 * 1024

  /// Parameters of SETTINGS frames (RFC 9113 section 6.5.2).
  private enum Parameter {
    static let enablePush: UInt16 = 2
    static let maxConcurrentStreams: UInt16 = 3
    static let initialWindowSize: UInt16 = 4
    static let maxFrameSize: UInt16 = 5
    static let maxHeaderListSize: UInt16 = 6
  }

  private let target: UpstreamTarget
  private let pool: UpstreamHTTP2Pool
  private let eventLoop: any EventLoop
  /// Completed when the upstream's SETTINGS have arrived.
  private var ready: EventLoopPromise<Void>?
  private var context: ChannelHandlerContext?
  /// The channel of `context`, which takes longer to find there.
  private var channel: (any Channel)?
  private var reader = FrameReader()
  private var input = ByteBuffer()
  private var streams: [UInt32: UpstreamStream] = [:]
  /// Streams that were made and have not begun.
  private var reserved = 0
  private var nextStream: UInt32 = 1
  /// The numbers of the last streams whose response was complete. The next one replaces the oldest.
  private var ended: [UInt32] = []
  private var nextEnded = 0
  private var cancelled = 0

  // What the upstream allows.
  private var maxConcurrent = UpstreamHTTP2.maxStreams
  private var initialWindow = UpstreamHTTP2.firstWindow
  private var sendWindow = UpstreamHTTP2.firstWindow

  // What the upstream may send.
  private var window = UpstreamHTTP2.connectionWindow
  private var spareWindow = UpstreamHTTP2.connectionWindow

  /// Frames for the next flush.
  private var out = ByteBuffer()
  /// Streams with something to write, in the order of their turns.
  private var queued = CircularBuffer<UpstreamStream>()
  /// Streams whose windows may need an update in the next flush.
  private var opening: [UpstreamStream] = []
  /// Streams whose exchanges may write again.
  private var unblocked: [UpstreamStream] = []
  /// Streams whose clients have got bytes in the current read.
  private var read: [UpstreamStream] = []
  private var replies = 0
  private var isReading = false
  private var isFlushing = false
  private var flushIsPlanned = false
  /// Whether no stream may begin any more.
  private var isDraining = false
  private var isClosed = false
  /// Why the connection failed on this side.
  private var fault: String?
  /// The task that ends the connection unless the upstream answers a PING; nil without doubt.
  private var doubted: Scheduled<Void>?
  /// How often bytes have arrived.
  private(set) var reads: UInt64 = 0
  private(set) var idleSince: NIODeadline

  init(target: UpstreamTarget, pool: UpstreamHTTP2Pool, eventLoop: any EventLoop, ready: EventLoopPromise<Void>?) {
    self.target = target
    self.pool = pool
    self.eventLoop = eventLoop
    self.ready = ready
    idleSince = eventLoop.now
  }

  var now: NIODeadline { eventLoop.now }

  /// Whether no stream is open.
  var isIdle: Bool { streams.isEmpty && reserved == 0 }

  /// Whether the upstream allows streams at all.
  var allowsStreams: Bool { maxConcurrent > 0 }

  /// Whether another stream may begin.
  ///
  /// Attack: an upload that the service does not read takes the whole window of the connection, and no body of another
  /// user can be sent. Requests with a body then get another connection.
  func hasRoom(forBody hasBody: Bool) -> Bool {
    !isDraining && !isClosed && ready == nil && doubted == nil && streams.count + reserved < maxConcurrent
      && (!hasBody || sendWindow > 0)
  }

  /// The time since the system has sent bytes, or got them acknowledged; nil if they may be of several streams.
  var sinceBytesOfOnlyStreamMoved: TimeAmount? {
    streams.count == 1 ? channel.flatMap { SocketProgress.sinceBytesMoved($0) } : nil
  }

  // MARK: for streams

  /// Makes a stream. It counts until it calls `ended`.
  func makeStream() -> UpstreamStream {
    reserved += 1
    return UpstreamStream(self, target: target, sendWindow: initialWindow)
  }

  /// Writes the head of a stream's request.
  /// - Parameter isWhole: whether the head ends the request.
  /// - Returns: the number of the stream; 0 if the head cannot be written.
  func begin(_ stream: UpstreamStream, head: ByteBuffer, isWhole: Bool) -> UInt32 {
    let isFirst = nextStream == 1
    guard !isClosed,
      let block = HeaderBlock.request(head, isSecure: target.upstream.isSecure, isFirst: isFirst)
    else { return 0 }
    let id = nextStream
    nextStream += 2
    reserved -= 1
    streams[id] = stream
    FrameHead.write(block: block, stream: id, isLast: isWhole, to: &out)
    if id >= Self.lastStream { drain() }
    return id
  }

  /// Gives the stream a turn to write.
  func queue(_ stream: UpstreamStream) {
    guard !stream.isQueued else { return }
    stream.isQueued = true
    queued.append(stream)
    flush()
  }

  /// Calls `windowUpdate` of the stream in the next flush, and sends the result.
  func openWindow(of stream: UpstreamStream) {
    opening.append(stream)
    flush()
  }

  /// The stream has ended.
  /// - Parameters:
  ///   - grown: what it had of `spareWindow`.
  ///   - code: the code to reset it with; nil if the upstream knows of the end.
  func ended(_ stream: UpstreamStream, grown: Int, resetBy code: UInt32?) {
    spareWindow += grown
    if stream.id == 0 {
      reserved -= 1
    } else {
      streams[stream.id] = nil
      if stream.hasReceivedEnd { remember(stream.id) }
      if let code, !isClosed { reset(stream.id, code) }
    }
    guard isIdle else { return }
    idleSince = now
    if isDraining { closeGently() }
  }

  private func remember(_ id: UInt32) {
    if ended.count < Self.maxEnded {
      ended.append(id)
    } else {
      ended[nextEnded] = id
      nextEnded = (nextEnded + 1) % Self.maxEnded
    }
  }

  private func reset(_ id: UInt32, _ code: UInt32) {
    FrameHead(length: 4, type: FrameHead.rstStream, stream: id).write(to: &out)
    out.writeInteger(code)
    if code == FrameCode.cancel {
      cancelled += 1
      if cancelled > Self.maxCancelled { drain() }
    }
    flush()
  }

  /// Calls the closure in the next turn of the event loop.
  func later(_ body: @escaping () -> Void) { eventLoop.assumeIsolated().execute(body) }

  /// A request got no byte, and nothing else arrived meanwhile. The connection gets no new streams until something
  /// arrives, and ends if the upstream does not answer a PING.
  /// - Parameter moment: when bytes of the request were last sent.
  func doubt(since moment: NIODeadline) {
    guard doubted == nil, !isClosed, ready == nil, now - moment >= Self.doubtTime else { return }
    FrameHead(length: 8, type: FrameHead.ping).write(to: &out)
    out.writeInteger(UInt64(0))
    doubted = eventLoop.assumeIsolated().scheduleTask(in: Self.pingTime) {
      self.fail(FrameFault(FrameCode.noError, "it does not answer a PING"))
    }
    flush()
  }

  // MARK: ends

  /// Begins no streams any more, and closes after the last one.
  func drain() {
    guard !isDraining else { return }
    isDraining = true
    pool.closed(self)
    if isIdle { closeGently() }
  }

  private func closeGently() {
    guard !isClosed, let context else { return }
    writeGoAway(FrameCode.noError)
    send(context)
    end(nil)
    context.close(promise: nil)
  }

  /// Ends the connection because of an error.
  private func fail(_ fault: FrameFault) {
    guard !isClosed, let context else { return }
    writeGoAway(fault.code)
    send(context)
    // Otherwise each exchange reports it, or what waits for the connection.
    if ready == nil, streams.isEmpty { target.report(fault.reason) }
    end(fault.reason)
    endWaiting(fault)
    context.close(promise: nil)
  }

  /// Ends the wait for the upstream's SETTINGS.
  private func endWaiting(_ error: any Error) {
    let last = ready
    ready = nil
    last?.fail(error)
  }

  private func writeGoAway(_ code: UInt32) {
    FrameHead(length: 8, type: FrameHead.goAway).write(to: &out)
    // The last stream of the upstream, which may begin none.
    out.writeMultipleIntegers(UInt32(0), code)
  }

  private func end(_ reason: String?) {
    guard !isClosed else { return }
    isClosed = true
    isDraining = true
    doubted?.cancel()
    doubted = nil
    pool.closed(self)
    queued.removeAll()
    opening = []
    unblocked = []
    let left = Array(streams.values)
    streams = [:]
    for stream in left { stream.fail(reason) }
  }

  // MARK: ChannelHandler

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    channel = context.channel
    if context.channel.isActive, !target.upstream.isSecure { begin(context) }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    channel = nil
  }

  func channelActive(context: ChannelHandlerContext) {
    if !target.upstream.isSecure { begin(context) }
    context.fireChannelActive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if let event = event as? TLSUserEvent, case .handshakeCompleted(let agreed) = event {
      if agreed == "h2" {
        begin(context)
      } else {
        endWaiting(FrameFault(FrameCode.noError, "it does not agree to HTTP/2 by ALPN"))
        context.close(promise: nil)
      }
    }
    if let event = event as? ChannelEvent, event == .inputClosed { context.close(promise: nil) }
    context.fireUserInboundEventTriggered(event)
  }

  /// Sends the connection preface (RFC 9113 section 3.4).
  private func begin(_ context: ChannelHandlerContext) {
    // One of the streams may be silent for a long time.
    Keepalive.enable(context.channel)
    out.writeStaticString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    FrameHead(length: 12, type: FrameHead.settings).write(to: &out)
    out.writeMultipleIntegers(Parameter.enablePush, UInt32(0))
    out.writeMultipleIntegers(Parameter.maxHeaderListSize, UInt32(FrameReader.maxHead))
    writeWindow(0, Self.connectionWindow - Self.firstWindow)
    send(context)
  }

  func channelInactive(context: ChannelHandlerContext) {
    end(fault)
    endWaiting(ChannelError.ioOnClosedChannel)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    endWaiting(error)
    if !UpstreamHTTP1.isClosing(error) {
      fault = UpstreamTLS.words(for: error) ?? "the connection failed: \(error)"
    }
    context.close(promise: nil)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable {
      replies = 0
      flushNow()
    }
    context.fireChannelWritabilityChanged()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isClosed else { return }
    let bytes = unwrapInboundIn(data)
    if input.readableBytes == 0 {
      input = bytes
    } else {
      input.discardReadBytes()
      input.writeImmutableBuffer(bytes)
    }
    reads &+= 1
    if let task = doubted {
      task.cancel()
      doubted = nil
    }
    isReading = true
    do throws(FrameFault) {
      while !isClosed, let frame = try reader.next(&input) { try receive(frame) }
    } catch {
      fail(error)
    }
    if input.readableBytes == 0 { input = ByteBuffer() }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    if !read.isEmpty {
      let streams = read
      read.removeAll(keepingCapacity: true)
      for stream in streams { stream.flushAnswer() }
    }
    isReading = false
    flushNow()
    context.fireChannelReadComplete()
  }
}

// MARK: - frames of the upstream

extension UpstreamHTTP2 {
  private func receive(_ frame: FrameReader.Frame) throws(FrameFault) {
    switch frame {
    case .data(let id, let bytes, let counted, let isLast):
      window -= counted
      guard window >= 0 else { throw FrameFault(FrameCode.flowControlError, "it sends more than it may") }
      guard let stream = try answering(id) else { return }
      stream.receive(bytes, counted: counted, isLast: isLast)
      noteRead(stream)
    case .head(let id, let fields, let isLast):
      guard let stream = try answering(id) else { return }
      stream.receive(fields, isLast: isLast)
      noteRead(stream)
    case .reset(let id, let code):
      if let stream = streams[id] { stream.wasReset(by: code) } else { try checkHasBegun(id) }
    case .settings(let values): try apply(values)
    case .ping(let content):
      FrameHead(length: 8, type: FrameHead.ping, flags: FrameHead.acknowledgement).write(to: &out)
      out.writeInteger(content)
      try countReply()
    case .pong: break
    case .goAway(let last, let code, let text): goAway(last, code, text)
    case .window(let id, let increment): try changeWindow(id, Int(increment))
    }
  }

  private func noteRead(_ stream: UpstreamStream) {
    if stream.isUsed, read.last !== stream { read.append(stream) }
  }

  /// The stream whose response a frame belongs to; nil if the gateway has reset it.
  private func answering(_ id: UInt32) throws(FrameFault) -> UpstreamStream? {
    let stream = streams[id]
    if stream == nil { try checkHasBegun(id) }
    // Attack, or a broken service: a second response or second trailers on a stream.
    guard !(stream?.hasReceivedEnd ?? ended.contains(id)) else {
      throw FrameFault(FrameCode.streamClosed, "it sends on after the end of a response")
    }
    return stream
  }

  private func checkHasBegun(_ id: UInt32) throws(FrameFault) {
    guard id < nextStream, !id.isMultiple(of: 2) else {
      throw FrameFault(FrameCode.protocolError, "a frame has a stream that does not exist")
    }
  }

  /// Attack: frames that each require a reply, from an upstream that does not read the replies.
  private func countReply() throws(FrameFault) {
    guard !(channel?.isWritable ?? true) else { return }
    replies += 1
    if replies > Self.maxReplies { throw FrameFault(FrameCode.enhanceYourCalm, "it does not read the replies to PING") }
  }

  private func apply(_ values: [(parameter: UInt16, value: UInt32)]) throws(FrameFault) {
    for (parameter, value) in values {
      switch parameter {
      case Parameter.enablePush:
        guard value == 0 else { throw FrameFault(FrameCode.protocolError, "its SETTINGS allow pushes") }
      case Parameter.maxConcurrentStreams: maxConcurrent = min(Int(value), Self.maxStreams)
      case Parameter.initialWindowSize:
        guard value <= UInt32(Self.maxWindow) else { throw Self.tooLargeWindow }
        let change = Int(value) - initialWindow
        initialWindow = Int(value)
        for stream in streams.values where !stream.changeSendWindow(by: change) { throw Self.tooLargeWindow }
      case Parameter.maxFrameSize:
        guard (16_384...16_777_215).contains(value) else {
          throw FrameFault(FrameCode.protocolError, "its SETTINGS have a wrong frame size")
        }
      default: break
      }
    }
    out.writeImmutableBuffer(FrameHead.settingsAcknowledgement)
    try countReply()
    guard let first = ready else { return }
    ready = nil
    first.succeed()
  }

  private static let tooLargeWindow = FrameFault(FrameCode.flowControlError, "a window is too large")

  private func goAway(_ last: UInt32, _ code: UInt32, _ text: String) {
    drain()
    let reason = "it ended the connection: GOAWAY \(FrameCode.name(of: code))\(text.isEmpty ? "" : ", \(text)")"
    fault = reason
    // The exchanges that it ends may go on elsewhere, and do not report it then.
    if code != FrameCode.noError { target.report(reason) }
    for stream in Array(streams.values) where stream.id > last { stream.fail(reason, isUnhandled: true) }
  }

  private func changeWindow(_ id: UInt32, _ increment: Int) throws(FrameFault) {
    if id == 0 {
      sendWindow += increment
      guard increment > 0 else { throw FrameFault(FrameCode.protocolError, "an empty change of a window") }
      guard sendWindow <= Self.maxWindow else { throw Self.tooLargeWindow }
    } else if let stream = streams[id] {
      // An error of the stream only (RFC 9113 section 6.9).
      if increment == 0 {
        stream.refuse("an empty change of a window")
      } else if !stream.changeSendWindow(by: increment) {
        stream.refuse("a window is too large", FrameCode.flowControlError)
      }
    } else {
      try checkHasBegun(id)
    }
  }
}

// MARK: - frames for the upstream

extension UpstreamHTTP2 {
  /// Schedules a flush: at the end of the current read, or in the next turn of the event loop.
  func flush() {
    guard !isReading, !isFlushing, !flushIsPlanned, !isClosed else { return }
    flushIsPlanned = true
    later {
      self.flushIsPlanned = false
      self.flushNow()
    }
  }

  private func flushNow() {
    guard !isFlushing, !isClosed, let context else { return }
    isFlushing = true
    repeat {
      writeWindows()
      writeBodies()
      guard out.readableBytes > 0 else { break }
      send(context)
    } while !isClosed
    isFlushing = false
    guard !unblocked.isEmpty else { return }
    let streams = unblocked
    unblocked = []
    for stream in streams { stream.tellRoom() }
  }

  private func writeWindows() {
    if window <= Self.connectionWindow / 2 {
      writeWindow(0, Self.connectionWindow - window)
      window = Self.connectionWindow
    }
    guard !opening.isEmpty else { return }
    let streams = opening
    opening = []
    for stream in streams {
      if let increment = stream.windowUpdate(spare: &spareWindow) { writeWindow(stream.id, increment) }
    }
  }

  private func writeWindow(_ id: UInt32, _ increment: Int) {
    FrameHead(length: 4, type: FrameHead.windowUpdate, stream: id).write(to: &out)
    out.writeInteger(UInt32(increment))
  }

  /// Writes a frame of each stream in turn, as many as the socket accepts at once.
  private func writeBodies() {
    guard !queued.isEmpty, channel?.isWritable ?? false else { return }
    // How many turns in a row brought nothing.
    var fruitless = 0
    while out.readableBytes < SocketBuffers.writeLimit, fruitless < queued.count, let stream = queued.popFirst() {
      let before = out.readableBytes
      if stream.writeFrame(to: &out, window: &sendWindow) {
        queued.append(stream)
      } else {
        stream.isQueued = false
      }
      fruitless = out.readableBytes == before ? fruitless + 1 : 0
      if stream.takeRoom() { unblocked.append(stream) }
    }
  }

  /// Writes the frames that are ready.
  private func send(_ context: ChannelHandlerContext) {
    // A flush can make the channel writable again, and this is called again within it.
    var bytes = out
    out = ByteBuffer()
    context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
    guard out.capacity == 0, bytes.capacity <= Self.kept else { return }
    bytes.clear()
    out = bytes
  }
}
