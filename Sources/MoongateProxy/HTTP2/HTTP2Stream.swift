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

    /// Queues a frame for the next flush.
    func write(_ payload: HTTP2Frame.FramePayload, of stream: HTTP2Stream)
    func flush()
    /// Calls `windowUpdate` of the stream in the next flush, and sends the result.
    func openWindow(of stream: HTTP2Stream)
    /// Adds the handlers for requests to the gateway itself to the channel.
    func makeInner(_ channel: StreamChannel) throws
  }

  /// Frames that the client sent and the request does not accept yet.
  private struct BufferedFrame {
    var payload: HTTP2Frame.FramePayload
    /// The bytes that flow control counts.
    var bytes: Int
  }

  /// Buffered DATA frames are merged up to this many bytes.
  private static let mostMerged = 16 * 1024

  let id: HTTP2StreamID
  let eventLoop: any EventLoop
  /// nil after the end: while the stream is open, the stream and its connection refer to each other.
  private var transport: (any Transport)?
  private var client: ClientConnection?
  private var framing = StreamFraming()
  private var inner: StreamChannel?
  /// How many bytes of the response wait for flow control or for the connection.
  private var waiting = 0
  private(set) var isFull = false
  private var bufferedFrames: [BufferedFrame] = []
  /// The bytes of `bufferedFrames` that flow control counts.
  private var bufferedBytes = 0
  private var isTaking = false
  /// Whether the client has sent its last frame, which may be buffered. The library accepts no WINDOW_UPDATE then.
  private var clientHasEnded = false
  /// The client's window, as the library last reported it.
  private var window: Int
  private let fullWindow: Int
  private var isOpeningWindow = false
  /// Promises for the end of the response.
  private var waitingForEnd: [EventLoopPromise<Void>] = []

  /// Whether the stream has ended. It sends nothing then.
  var isOver: Bool { transport == nil }

  /// - Parameter window: how many bytes the client may send before it needs a WINDOW_UPDATE.
  init(_ id: HTTP2StreamID, transport: any Transport, window: Int) {
    self.id = id
    self.transport = transport
    eventLoop = transport.eventLoop
    self.window = window
    fullWindow = window
  }

  /// Sets the connection that serves the request.
  func serve(by client: ClientConnection) { self.client = client }

  // MARK: from the connection

  /// Receives a frame of the client.
  func receive(_ payload: HTTP2Frame.FramePayload) {
    guard !isOver, let client else { return }
    if payload.endsStream { clientHasEnded = true }
    if isTaking || !bufferedFrames.isEmpty || !client.mayRead() {
      return hold(payload)
    }
    take(payload, client)
  }

  /// Attack: a million frames of one byte. Each costs far more memory than the window counts, so small frames are
  /// merged.
  private func hold(_ payload: HTTP2Frame.FramePayload) {
    let bytes = payload.countedBytes
    bufferedBytes += bytes
    guard let last = bufferedFrames.last, let merged = Self.merge(last.payload, payload) else {
      bufferedFrames.append(BufferedFrame(payload: payload, bytes: bytes))
      return
    }
    bufferedFrames[bufferedFrames.count - 1] = BufferedFrame(payload: merged, bytes: last.bytes + bytes)
  }

  /// - Returns: nil unless both are DATA frames and small enough together.
  private static func merge(
    _ first: HTTP2Frame.FramePayload, _ second: HTTP2Frame.FramePayload
  ) -> HTTP2Frame.FramePayload? {
    guard case .data(let one) = first, case .data(let two) = second, !one.endStream,
      case .byteBuffer(var bytes) = one.data, case .byteBuffer(let more) = two.data,
      bytes.readableBytes + more.readableBytes <= mostMerged
    else { return nil }
    bytes.writeImmutableBuffer(more)
    return .data(.init(data: .byteBuffer(bytes), endStream: two.endStream))
  }

  private func take(_ payload: HTTP2Frame.FramePayload, _ client: ClientConnection) {
    isTaking = true
    defer { isTaking = false }
    var parts: [ByteBuffer] = []
    guard framing.receive(payload, into: &parts) else { return reset(.protocolError) }
    for part in parts { client.received(part) }
  }

  /// Called after all frames of one read.
  func receivedAll() { client?.receivedAll() }

  /// Sets the client's window to the size that the library reports.
  func windowChanged(to size: Int) {
    window = size
    openWindow()
  }

  /// The same policy as `InboundWindowManager` in the library: a full window once half of it is used.
  private func openWindow() {
    guard !isOpeningWindow, needsWindow else { return }
    isOpeningWindow = true
    transport?.openWindow(of: self)
  }

  private var needsWindow: Bool { !clientHasEnded && !isOver && window + bufferedBytes <= fullWindow / 2 }

  /// - Returns: the size of the WINDOW_UPDATE to send; nil if the client needs none.
  func windowUpdate() -> Int? {
    isOpeningWindow = false
    guard needsWindow else { return nil }
    let bytes = fullWindow - window - bufferedBytes
    window += bytes
    return bytes
  }

  /// Called when DATA or the end of the response was written.
  /// - Parameter bytes: how many bytes of DATA.
  func wrote(_ bytes: Int, isLast: Bool) {
    waiting -= bytes
    guard isLast else { return }
    framing.wroteEnd()
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

  /// Called once when the stream was reset or has ended, or when the connection has closed.
  func closed() {
    guard !isOver else { return }
    transport = nil
    bufferedFrames = []
    bufferedBytes = 0
    client?.ended()
    client?.wire = nil
    client = nil
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
        waiting += payload.countedBytes
        transport.write(payload, of: self)
      }
      if waiting >= SocketBuffers.writeLimit { isFull = true }
      if !isAnswer { reset(.internalError) }
    }
    // A promise waits for the end of the response: callers use it to close without truncating the response.
    guard let promise else { return }
    if framing.answerHasEnded, !framing.endIsWritten, !isOver {
      waitingForEnd.append(promise)
    } else {
      promise.succeed()
    }
  }

  func flush() { transport?.flush() }

  func read() {
    guard !isTaking else { return }
    while !bufferedFrames.isEmpty, !isOver, let client, client.mayRead() {
      let next = bufferedFrames.removeFirst()
      bufferedBytes -= next.bytes
      take(next.payload, client)
    }
    receivedAll()
    openWindow()
  }

  func end() { if let code = framing.end() { send(code) } }

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

  func reset(_ code: HTTP2ErrorCode) { if let code = framing.reset(code) { send(code) } }

  private func send(_ code: HTTP2ErrorCode) {
    transport?.write(.rstStream(code), of: self)
    transport?.flush()
  }
}

extension HTTP2Frame.FramePayload {
  fileprivate var endsStream: Bool {
    switch self {
    case .data(let frame): frame.endStream
    case .headers(let frame): frame.endStream
    default: false
    }
  }

  /// The bytes that flow control counts (RFC 9113 section 6.9.1).
  var countedBytes: Int {
    guard case .data(let frame) = self else { return 0 }
    return frame.data.readableBytes + (frame.paddingBytes.map { $0 + 1 } ?? 0)
  }
}
