import NIOCore
import NIOHTTP2
import NIOHTTPTypes

/// One HTTP/2 stream: the wire of a `ClientConnection` that serves one request.
///
/// It is no channel and has no pipeline. A request for the gateway itself gets a channel when it is whole
/// (`StreamChannel`), for the part that answers it.
final class HTTP2Stream: ClientWire {
  /// What a stream writes to. Implemented by the connection.
  protocol Outlet: AnyObject {
    var eventLoop: any EventLoop { get }
    var allocator: ByteBufferAllocator { get }
    /// Whether the connection takes more bytes.
    var isWritable: Bool { get }
    /// An array for the fields of heads.
    var spareFields: [HeadField] { get set }

    /// Has the frame written before the next flush.
    func write(_ payload: HTTP2Frame.FramePayload, of stream: HTTP2Stream)
    func flush()
    /// Opens the stream's window again, by so many bytes.
    func openWindow(of stream: HTTP2Stream, by bytes: Int)
    /// Makes the part of the gateway that answers requests of its own, behind the channel.
    func makeInner(_ channel: StreamChannel) throws
  }

  let id: HTTP2StreamID
  private unowned let outlet: any Outlet
  private var client: ClientConnection?
  private var framing = StreamFraming()
  private var inner: StreamChannel?
  /// Of the answer, what waits for a window or for the connection, in bytes.
  private var waiting = 0
  private(set) var isFull = false
  /// What the client has sent and is not taken yet, and how many bytes of it the window counts.
  private var held: [HTTP2Frame.FramePayload] = []
  private var heldBytes = 0
  private var isTaking = false
  /// The window that the client has, as far as it was told.
  private var window: Int
  private let fullWindow: Int
  /// Whoever waits for the answer to leave.
  private var waitingForEnd: [EventLoopPromise<Void>] = []
  private var isOver = false

  /// - Parameter window: how much the client may send before it is told to go on.
  init(_ id: HTTP2StreamID, outlet: any Outlet, window: Int) {
    self.id = id
    self.outlet = outlet
    self.window = window
    fullWindow = window
  }

  /// Begins to serve it.
  func serve(by client: ClientConnection) { self.client = client }

  // MARK: from the connection

  /// Takes a frame of the client.
  func receive(_ payload: HTTP2Frame.FramePayload) {
    guard !isOver, let client else { return }
    if isTaking || !held.isEmpty || !client.mayRead() {
      held.append(payload)
      heldBytes += payload.countedBytes
      return
    }
    take(payload, client)
  }

  private func take(_ payload: HTTP2Frame.FramePayload, _ client: ClientConnection) {
    isTaking = true
    defer { isTaking = false }
    var parts: [ByteBuffer] = []
    guard framing.receive(payload, into: &parts) else { return reset(.protocolError) }
    for part in parts { client.received(part) }
  }

  /// All frames that came in one go were given to the streams.
  func receivedAll() { client?.receivedAll() }

  /// The client's window is so large now.
  func windowChanged(to size: Int) {
    window = size
    openWindow()
  }

  /// As `InboundWindowManager` of the library: told to go on when half of the window is used up.
  private func openWindow() {
    let free = window + heldBytes
    guard !framing.requestHasEnded, !isOver, free <= fullWindow / 2 else { return }
    window += fullWindow - free
    outlet.openWindow(of: self, by: fullWindow - free)
  }

  /// So many bytes of the answer have left, and the last of them where it says so.
  func left(_ bytes: Int, isLast: Bool) {
    waiting -= bytes
    guard isLast else { return }
    framing.left()
    let promises = waitingForEnd
    waitingForEnd = []
    for promise in promises { promise.succeed() }
  }

  /// Tells the client where it may write again. To be called when no frame is being written.
  func writabilityChanged() {
    if isFull, waiting <= SocketBuffers.writeLimit / 2 { isFull = false }
    guard !isOver, isWritable else { return }
    client?.becameWritable()
    inner?.writabilityChanged()
  }

  func quiesce() { client?.quiesce() }

  /// The stream was reset, has come to its end, or its connection has.
  func closed() {
    guard !isOver else { return }
    isOver = true
    held = []
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

  var eventLoop: any EventLoop { outlet.eventLoop }

  var allocator: ByteBufferAllocator { outlet.allocator }

  var isWritable: Bool { !isFull && outlet.isWritable }

  func send(_ bytes: ByteBuffer, promise: EventLoopPromise<Void>?) {
    if bytes.readableBytes > 0, !isOver {
      let isAnswer = framing.write(bytes, spare: &outlet.spareFields) { payload in
        waiting += payload.countedBytes
        outlet.write(payload, of: self)
      }
      if waiting >= SocketBuffers.writeLimit { isFull = true }
      if !isAnswer { reset(.internalError) }
    }
    // Whoever waits for bytes to leave waits for the answer's end: it is how a connection is closed without cutting its
    // answer.
    guard let promise else { return }
    if framing.isWhole, !framing.hasLeft, !isOver { waitingForEnd.append(promise) } else { promise.succeed() }
  }

  func flush() { outlet.flush() }

  func read() {
    guard !isTaking else { return }
    while !held.isEmpty, !isOver, let client, client.mayRead() {
      let next = held.removeFirst()
      heldBytes -= next.countedBytes
      take(next, client)
    }
    receivedAll()
    openWindow()
  }

  func end() { if let code = framing.end() { send(code) } }

  func endOutput() { end() }

  func watchPeer() {}

  func deliver(_ parts: [HTTPRequestPart]) { inner?.deliver(parts) }

  /// Makes the channel that the gateway's own answer comes from.
  func makeInner() throws {
    guard inner == nil, let client else { return }
    let made = StreamChannel(self, client)
    inner = made
    try outlet.makeInner(made)
    made.begin()
  }

  func reset(_ code: HTTP2ErrorCode) { if let code = framing.reset(code) { send(code) } }

  private func send(_ code: HTTP2ErrorCode) {
    outlet.write(.rstStream(code), of: self)
    outlet.flush()
  }
}

extension HTTP2Frame.FramePayload {
  /// What flow control counts of it (RFC 9113 section 6.9.1).
  var countedBytes: Int {
    guard case .data(let frame) = self else { return 0 }
    return frame.data.readableBytes + (frame.paddingBytes.map { $0 + 1 } ?? 0)
  }
}
