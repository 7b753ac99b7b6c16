import NIOCore
import NIOHTTP2
import NIOHTTPTypes

/// One HTTP/2 stream: the wire of a `ClientConnection` that serves one request.
///
/// A stream has no channel and no pipeline. A complete request for the gateway itself gets a channel (`StreamChannel`)
/// for the handler that responds.
final class HTTP2Stream: ClientWire {
  /// What a stream sends its frames through: the HTTP/2 connection.
  protocol Transport: AnyObject {
    var eventLoop: any EventLoop { get }
    /// The address of the client.
    var remoteAddress: SocketAddress? { get }
    /// Whether the connection accepts more bytes.
    var isWritable: Bool { get }
    /// A reusable array for the fields of response heads.
    var spareFields: [HeadField] { get set }
    /// By how many bytes the windows of all streams may still grow.
    var spareWindow: Int { get set }

    /// Queues a frame for the next flush.
    func write(_ payload: HTTP2Frame.FramePayload, of stream: HTTP2Stream)
    func flush()
    /// Calls `windowUpdate` of the stream in the next flush, and sends the result.
    func openWindow(of stream: HTTP2Stream)
    /// Adds the handlers for requests to the gateway itself to the channel.
    func makeInner(_ channel: StreamChannel) throws
    /// Counts a stream that is reset because the client broke a rule.
    func countError()
  }

  /// How many bytes the client may send at first before it needs a WINDOW_UPDATE, and at most.
  ///
  /// Attack: uploads for a service that reads nothing. The gateway holds a window of each. The window grows while the
  /// service reads, and `Transport.spareWindow` bounds the growth of all streams together.
  static let firstWindow = 64 * 1024
  private static let maxWindow = 1024 * 1024
  /// Held bytes are merged up to this many.
  private static let mostMerged = 16 * 1024

  let id: HTTP2StreamID
  let eventLoop: any EventLoop
  /// nil after the end: while the stream is open, the stream and its connection refer to each other.
  private var transport: (any Transport)?
  /// nil after a reset and after the end: what the client sends then is dropped.
  private var client: ClientConnection?
  private var framing = StreamFraming()
  private var inner: StreamChannel?
  /// How many bytes of the response wait for flow control or for the connection.
  private var waiting = 0
  private(set) var isFull = false
  /// Bytes of the body that the client sent and the request does not accept yet.
  private var held: [ByteBuffer] = []
  private var heldBytes = 0
  /// Whether the body ends after the held bytes, and the lines of its trailers.
  private var endIsHeld = false
  private var trailers: ByteBuffer?
  private var isPassing = false
  /// Whether the client has sent its last frame. The library accepts no WINDOW_UPDATE then.
  private var clientHasEnded = false
  /// Whether a frame of the response was sent.
  private var hasAnswered = false
  /// Whether the client knows of a reset of which the library does not know yet.
  var isResetEarly = false
  /// The client's window, as the library last reported it.
  private var window = HTTP2Stream.firstWindow
  private var fullWindow = HTTP2Stream.firstWindow
  private var isOpeningWindow = false
  /// Promises for the end of the response, or of the part of it that has arrived.
  private var waitingForEnd: [EventLoopPromise<Void>] = []

  /// Whether the stream has ended. It sends nothing then.
  var isOver: Bool { transport == nil }

  /// Whether frames of the client may be on their way, and no frame of the response waits in the library.
  var mayBeResetEarly: Bool { !clientHasEnded && (!hasAnswered || framing.endIsWritten) }

  init(_ id: HTTP2StreamID, transport: any Transport) {
    self.id = id
    self.transport = transport
    eventLoop = transport.eventLoop
  }

  /// Sets the connection that serves the request.
  func serve(by client: ClientConnection) { self.client = client }

  // MARK: from the connection

  /// Receives HEADERS or DATA of the client.
  func receive(_ payload: HTTP2Frame.FramePayload) {
    guard let client else { return }
    switch payload {
    case .headers(let frame):
      clientHasEnded = frame.endStream
      if framing.awaitsHead { return receiveHead(frame, client) }
      guard let lines = FieldText.trailers(frame.headers) else { return reset(.protocolError) }
      trailers = lines
      if frame.endStream { receiveEnd(client) }
    case .data(let frame):
      clientHasEnded = frame.endStream
      if case .byteBuffer(let bytes) = frame.data, bytes.readableBytes > 0 { receiveBody(bytes, client) }
      if frame.endStream { receiveEnd(client) }
    case .rstStream, .priority, .settings, .pushPromise, .ping, .goAway, .windowUpdate, .alternativeService, .origin:
      break
    }
  }

  private func receiveHead(_ frame: HTTP2Frame.FramePayload.Headers, _ client: ClientConnection) {
    guard let text = framing.receiveHead(frame.headers, isWhole: frame.endStream) else { return reset(.protocolError) }
    pass([text], to: client)
  }

  private func receiveBody(_ bytes: ByteBuffer, _ client: ClientConnection) {
    if isPassing || !held.isEmpty || !client.mayRead() { hold(bytes) } else { passBody(bytes, to: client) }
  }

  /// Attack: a million frames of one byte, or small frames that keep the large buffers of their reads in memory. Each
  /// would cost far more memory than the window counts, so held bytes are copied and merged.
  private func hold(_ bytes: ByteBuffer) {
    heldBytes += bytes.readableBytes
    let last = held.count - 1
    if last >= 0, held[last].readableBytes + bytes.readableBytes <= Self.mostMerged {
      held[last].writeImmutableBuffer(bytes)
    } else {
      held.append(ByteBuffer(bytes: bytes.readableBytesView))
    }
  }

  private func receiveEnd(_ client: ClientConnection) {
    // The stream may have been reset because of the body's last bytes.
    guard self.client === client else { return }
    if isPassing || !held.isEmpty { endIsHeld = true } else { passEnd(to: client) }
  }

  private func passBody(_ bytes: ByteBuffer, to client: ClientConnection) {
    var parts: [ByteBuffer] = []
    guard framing.receiveBody(bytes, into: &parts) else { return reset(.protocolError) }
    pass(parts, to: client)
  }

  private func passEnd(to client: ClientConnection) {
    var parts: [ByteBuffer] = []
    guard framing.receiveEnd(trailers: trailers, into: &parts) else { return reset(.protocolError) }
    pass(parts, to: client)
  }

  private func pass(_ parts: [ByteBuffer], to client: ClientConnection) {
    isPassing = true
    defer { isPassing = false }
    for part in parts { client.received(part) }
  }

  /// Called after all frames of one read.
  func receivedAll() { client?.receivedAll() }

  /// Sets the client's window to the size that the library reports.
  func windowChanged(to size: Int) {
    window = size
    openWindow()
  }

  /// A full window once half of it is used, as the library's `InboundWindowManager` does it.
  private func openWindow() {
    guard !isOpeningWindow, needsWindow else { return }
    isOpeningWindow = true
    transport?.openWindow(of: self)
  }

  private var needsWindow: Bool { !clientHasEnded && client != nil && window + heldBytes <= fullWindow / 2 }

  /// - Returns: the size of the WINDOW_UPDATE to send; nil if the client needs none.
  func windowUpdate() -> Int? {
    isOpeningWindow = false
    guard needsWindow else { return nil }
    if heldBytes == 0, fullWindow < Self.maxWindow, let transport, transport.spareWindow >= fullWindow {
      transport.spareWindow -= fullWindow
      fullWindow *= 2
    }
    let bytes = fullWindow - window - heldBytes
    window += bytes
    return bytes
  }

  /// Called when DATA or the end of the response was written.
  /// - Parameter bytes: how many bytes of DATA.
  func wrote(_ bytes: Int, isLast: Bool) {
    waiting -= bytes
    if isLast { framing.wroteEnd() }
    guard !waitingForEnd.isEmpty, isLast || waiting == 0 && !framing.answerHasEnded else { return }
    let promises = waitingForEnd
    waitingForEnd = []
    for promise in promises { promise.succeed() }
  }

  /// Resumes the response if the stream accepts more bytes.
  func writabilityChanged() {
    if isFull, waiting <= SocketBuffers.writeLimit / 2 { isFull = false }
    guard !isOver, isWritable else { return }
    client?.becameWritable()
    inner?.writabilityChanged()
  }

  func quiesce() { client?.quiesce() }

  /// Called once when the stream has ended, or when the connection has closed.
  func closed() {
    guard !isOver else { return }
    transport?.spareWindow += fullWindow - Self.firstWindow
    transport = nil
    release()
  }

  /// Ends the request and its response.
  private func release() {
    held = []
    heldBytes = 0
    let last = client
    client = nil
    last?.ended()
    last?.wire = nil
    let promises = waitingForEnd
    waitingForEnd = []
    for promise in promises { promise.fail(ChannelError.ioOnClosedChannel) }
    inner?.closed()
    inner = nil
  }

  // MARK: ClientWire

  var isWritable: Bool { !isFull && transport?.isWritable ?? false }

  func send(_ bytes: ByteBuffer, promise: EventLoopPromise<Void>?) {
    if bytes.readableBytes > 0, let transport {
      let isAnswer = framing.write(bytes, spare: &transport.spareFields) { payload in
        hasAnswered = true
        waiting += payload.countedBytes
        transport.write(payload, of: self)
      }
      if waiting >= SocketBuffers.writeLimit { isFull = true }
      if !isAnswer { reset(.internalError) }
    }
    // A promise waits for the end of the response: callers use it to close without truncating the response. Without
    // bytes it waits for all bytes before: a truncated response is reset only after what the client can have of it.
    guard let promise else { return }
    let awaitsMore = framing.answerHasEnded ? !framing.endIsWritten : bytes.readableBytes == 0 && waiting > 0
    if awaitsMore, !framing.isReset, !isOver {
      waitingForEnd.append(promise)
    } else {
      promise.succeed()
    }
  }

  func trail(_ lines: ByteBuffer) { framing.trail(lines) }

  func flush() { transport?.flush() }

  func read() {
    guard !isPassing else { return }
    while !held.isEmpty, let client, client.mayRead() {
      let bytes = held.removeFirst()
      heldBytes -= bytes.readableBytes
      passBody(bytes, to: client)
    }
    if held.isEmpty, endIsHeld, let client {
      endIsHeld = false
      passEnd(to: client)
    }
    receivedAll()
    openWindow()
  }

  func end() { if let code = framing.end() { send(code) } }

  func cut() { end() }

  var hasBytesOnTheWay: Bool { false }

  func endOutput() { end() }

  func watchPeer() {}

  func deliver(_ parts: [HTTPRequestPart]) { inner?.deliver(parts) }

  /// Creates the channel for a request to the gateway itself.
  func makeInner() throws {
    guard inner == nil, let client, let transport else { return }
    let made = StreamChannel(self, client, remoteAddress: transport.remoteAddress)
    inner = made
    try transport.makeInner(made)
    made.begin()
  }

  func reset(_ code: HTTP2ErrorCode) {
    guard let code = framing.reset(code) else { return }
    if code == .protocolError || code == .frameSizeError { transport?.countError() }
    send(code)
  }

  /// Attack: frames that arrive before the reset is written. The request ends here, not when the library reports the
  /// end of the stream.
  private func send(_ code: HTTP2ErrorCode) {
    transport?.write(.rstStream(code), of: self)
    transport?.flush()
    release()
  }
}

extension HTTP2Frame.FramePayload {
  /// The bytes that flow control counts (RFC 9113 section 6.9.1).
  var countedBytes: Int {
    guard case .data(let frame) = self else { return 0 }
    return frame.data.readableBytes + (frame.paddingBytes.map { $0 + 1 } ?? 0)
  }
}
