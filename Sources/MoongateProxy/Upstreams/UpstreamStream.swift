import MoongateCore
import NIOCore
import NIOHPACK

/// One exchange with an upstream of HTTP/2: a stream of its connection.
///
/// The head of the request becomes a header block, and its body DATA frames. The head of the response becomes text that
/// `ResponseDecoder` reads, and its DATA goes to the client as it is.
///
/// Attack (response splitting): DATA that looks like a response. Only HEADERS become a head, one for each request, and
/// nothing of a stream that has ended reaches a client.
final class UpstreamStream: UpstreamConnection {
  /// What may still come of the response.
  private enum Answer {
    case head
    /// The body, and the number of bytes that its head declares and that are missing.
    case body(left: Int?)
    /// The end has arrived. The body may be held.
    case ended
    /// The client has everything.
    case over
  }

  private static let maxInterim = 16
  /// Held bytes are merged up to this many.
  private static let mostMerged = 16 * 1024
  /// How many bytes of the request's body may wait here, and when it is accepted again.
  private static let writeLimit = SocketBuffers.writeLimit

  /// nil after the end, and while only held bytes are left.
  private var connection: UpstreamHTTP2?
  /// 0 until the head is written.
  private(set) var id: UInt32 = 0
  private var owner: (any UpstreamClient)?
  private var toHead = false

  // The request.
  private var hasHead = false
  private var hasBody = false
  /// Bytes of the body that wait for the windows or for the connection.
  private var pending = ByteBuffer()
  private var bodyHasEnded = false
  /// The header block of the trailers.
  private var trailerBlock: ByteBuffer?
  /// Whether the last frame of the request is written.
  private var requestIsOver = false
  /// How many bytes the upstream accepts. It can be negative (RFC 9113 section 6.9.2).
  private var sendWindow: Int
  private var isFull = false
  /// Whether the stream is in the connection's list of streams with something to write.
  var isQueued = false
  private var lastMoved: NIODeadline
  /// How often the connection had read when the request began.
  private var readsBefore: UInt64 = 0
  private var wasRefused = false

  // The response.
  private var answer = Answer.head
  private var decoder = ResponseDecoder()
  private var interims = 0
  private var window = ReceiveWindow()
  private var isOpeningWindow = false
  /// Bytes that the client does not accept yet.
  private var held: [ByteBuffer] = []
  private var heldBytes = 0
  /// The last bytes of a body of declared length whose end has not arrived. Trailers come before them.
  private var last: ByteBuffer?
  private var isDelivering = false

  init(_ connection: UpstreamHTTP2, target: UpstreamTarget, sendWindow: Int) {
    self.connection = connection
    self.sendWindow = sendWindow
    lastMoved = connection.now
    super.init(target: target)
  }

  override var isOpen: Bool { connection != nil }
  override var isWritable: Bool { !isFull && connection != nil }
  override var carriesFrames: Bool { true }
  override var isUnhandled: Bool { wasRefused }

  override var sinceBytesMoved: TimeAmount? {
    guard let connection else { return nil }
    let since = connection.now - lastMoved
    // The system knows only when bytes of any stream moved.
    return min(since, connection.sinceBytesOfOnlyStreamMoved ?? since)
  }

  /// Whether the upstream has ended the response. Any further frame of it is an error.
  var hasReceivedEnd: Bool {
    switch answer {
    case .head, .body: false
    case .ended, .over: true
    }
  }

  /// Whether the client waits for a flush of what it has got.
  var isUsed: Bool { owner != nil }

  // MARK: for the client's connection

  override func begin(for owner: any UpstreamClient, toHead: Bool, wantsUpgrade: Bool, hasBody: Bool = false) {
    self.owner = owner
    self.toHead = toHead
    self.hasBody = hasBody
    target.requestBegan()
  }

  override func write(_ bytes: ByteBuffer) {
    guard let connection else { return }
    if hasHead { return writeBody(bytes, connection) }
    hasHead = true
    requestIsOver = !hasBody
    readsBefore = connection.reads
    id = connection.begin(self, head: bytes, isWhole: !hasBody)
    if id == 0 { connection.later { self.fail("the head of the request is too large for HTTP/2") } }
  }

  private func writeBody(_ bytes: ByteBuffer, _ connection: UpstreamHTTP2) {
    guard bytes.readableBytes > 0, !requestIsOver, !bodyHasEnded else { return }
    if pending.readableBytes == 0 {
      pending = bytes
    } else {
      if pending.readerIndex > Self.writeLimit { pending.discardReadBytes() }
      pending.writeImmutableBuffer(bytes)
    }
    if pending.readableBytes >= Self.writeLimit { isFull = true }
    connection.queue(self)
  }

  override func endBody(trailers: ByteBuffer?) {
    guard !requestIsOver else { return }
    bodyHasEnded = true
    trailerBlock = trailers.flatMap { $0.readableBytes > 0 ? HeaderBlock.trailers($0) : nil }
    connection?.queue(self)
  }

  override func flush() { connection?.flush() }

  override func end(reusable: Bool) { leave() }

  override func close() {
    // Nothing has come from the upstream since this request began: the connection may be dead.
    if let connection, id > 0, connection.reads == readsBefore { connection.doubt(since: lastMoved) }
    leave()
  }

  override func resumeReading() {
    guard !isDelivering, !held.isEmpty, let owner else { return }
    isDelivering = true
    while !held.isEmpty, self.owner === owner, owner.takesAnswer {
      let bytes = held.removeFirst()
      heldBytes -= bytes.readableBytes
      owner.answerData(bytes)
      if held.isEmpty || !owner.takesAnswer { owner.flushAnswer() }
    }
    isDelivering = false
    guard self.owner === owner else { return }
    if held.isEmpty, case .ended = answer { finish() } else { openWindow() }
  }

  // MARK: the request's body

  /// Writes the next frame of the body, as far as the windows allow.
  /// - Parameter window: how many bytes the connection accepts.
  /// - Returns: whether more may follow once the connection accepts more.
  func writeFrame(to out: inout ByteBuffer, window: inout Int) -> Bool {
    guard let connection, !requestIsOver else { return false }
    let count = max(0, min(pending.readableBytes, sendWindow, window, FrameHead.maxPayload))
    if count > 0, let part = pending.readSlice(length: count) {
      let isLast = bodyHasEnded && pending.readableBytes == 0 && trailerBlock == nil
      FrameHead(length: count, type: FrameHead.data, flags: isLast ? FrameHead.endStream : 0, stream: id)
        .write(to: &out)
      out.writeImmutableBuffer(part)
      sendWindow -= count
      window -= count
      lastMoved = connection.now
      requestIsOver = isLast
    }
    guard pending.readableBytes == 0 else { return sendWindow > 0 }
    pending = ByteBuffer()
    if bodyHasEnded, !requestIsOver {
      requestIsOver = true
      if let trailerBlock {
        FrameHead.write(block: trailerBlock, stream: id, isLast: true, to: &out)
      } else {
        FrameHead(length: 0, type: FrameHead.data, flags: FrameHead.endStream, stream: id).write(to: &out)
      }
    }
    return false
  }

  /// - Returns: whether the exchange may write again since the last call.
  func takeRoom() -> Bool {
    guard isFull, pending.readableBytes <= Self.writeLimit / 2 else { return false }
    isFull = false
    return true
  }

  func tellRoom() { owner?.upstreamWritabilityChanged() }

  /// The upstream accepts more bytes, or fewer.
  /// - Returns: false if that is more than a window can be.
  func changeSendWindow(by change: Int) -> Bool {
    sendWindow += change
    guard sendWindow <= UpstreamHTTP2.maxWindow else { return false }
    lastMoved = connection?.now ?? lastMoved
    if sendWindow > 0, pending.readableBytes > 0 { connection?.queue(self) }
    return true
  }

  // MARK: the response

  func receive(_ fields: HPACKHeaders, isLast: Bool) {
    switch answer {
    case .head: receiveHead(fields, isLast: isLast)
    case .body(let left):
      guard isLast else { return refuse("trailers do not end the response") }
      guard let lines = FieldText.trailers(fields) else { return refuse("malformed trailers") }
      guard left ?? 0 == 0 else { return refuse("the body is shorter than its Content-Length") }
      if lines.readableBytes > 0 { owner?.answerTrailers(lines) }
      receiveEnd()
    case .ended, .over: break
    }
  }

  private func receiveHead(_ fields: HPACKHeaders, isLast: Bool) {
    guard let owner else { return }
    guard let answered = FieldText.answer(fields) else { return refuse("a malformed head") }
    let status = answered.status
    if status < 200 {
      interims += 1
      guard interims <= Self.maxInterim else { return refuse("too many interim responses") }
      // RFC 9113 section 8.6: there is no 101.
      guard !isLast, status != 101 else { return refuse("an interim response that HTTP/2 does not have") }
      return owner.answerInterim(status)
    }
    var text = answered.text
    var head: ResponseHead
    do throws(MessageFault) {
      guard let read = try decoder.next(&text, spare: &target.spare.fields, toHead: toHead), text.readableBytes == 0
      else { return refuse("a malformed head") }
      head = read
    } catch {
      return refuse(error.wordsOfAnswer)
    }
    var left: Int?
    switch head.framing {
    case .none: left = 0
    case .length(let length):
      left = length
      // Trailers may follow an empty body.
      if length == 0, !isLast { head.framing = .chunked }
    case .chunked, .untilClose:
      if isLast { left = 0 }
      head.framing = isLast ? .length(0) : .chunked
    }
    guard !isLast || left == 0 else { return refuse("the body is shorter than its Content-Length") }
    answer = .body(left: left)
    owner.answerBegan(head, by: self)
    target.spare.fields = head.fields
    if isLast, self.owner === owner { receiveEnd() }
  }

  /// - Parameter counted: how many bytes flow control counts.
  func receive(_ bytes: ByteBuffer, counted: Int, isLast: Bool) {
    guard window.take(counted) else {
      return refuse("it sends more than it may", FrameCode.flowControlError)
    }
    guard case .body(let left) = answer else { return refuse("a body without a head") }
    if let left {
      guard bytes.readableBytes <= left else { return refuse("the body is longer than its Content-Length") }
      answer = .body(left: left - bytes.readableBytes)
    }
    if bytes.readableBytes > 0 {
      if !isLast, bytes.readableBytes == left { last = ByteBuffer(bytes: bytes.readableBytesView) } else { pass(bytes) }
    }
    guard owner != nil else { return }
    guard isLast else { return openWindow() }
    if let left, left > bytes.readableBytes { return refuse("the body is shorter than its Content-Length") }
    receiveEnd()
  }

  private func pass(_ bytes: ByteBuffer) {
    guard let owner else { return }
    if isDelivering || !held.isEmpty || !owner.takesAnswer { hold(bytes) } else { owner.answerData(bytes) }
  }

  /// Attack, or a strange service: small frames that keep the large buffers of their reads in memory. Each would cost
  /// far more memory than the window counts, so held bytes are copied and merged.
  private func hold(_ bytes: ByteBuffer) {
    heldBytes += bytes.readableBytes
    let last = held.count - 1
    if last >= 0, held[last].readableBytes + bytes.readableBytes <= Self.mostMerged {
      held[last].writeImmutableBuffer(bytes)
    } else {
      held.append(ByteBuffer(bytes: bytes.readableBytesView))
    }
  }

  private func receiveEnd() {
    answer = .ended
    if let rest = last {
      last = nil
      pass(rest)
    }
    if held.isEmpty, !isDelivering { finish() }
  }

  /// The client has everything.
  private func finish() {
    guard let owner else { return }
    answer = .over
    owner.answerEnded(by: self)
    leave()
  }

  /// Writes everything that a read has brought to the client.
  func flushAnswer() { owner?.flushAnswer() }

  private func openWindow() {
    guard !isOpeningWindow, window.needsUpdate(held: heldBytes), !hasReceivedEnd, let connection else { return }
    isOpeningWindow = true
    connection.openWindow(of: self)
  }

  /// - Parameter spare: by how many bytes the windows of all streams may still grow.
  /// - Returns: the size of the WINDOW_UPDATE to send; nil if the upstream needs none.
  func windowUpdate(spare: inout Int) -> Int? {
    isOpeningWindow = false
    guard connection != nil, !hasReceivedEnd, window.needsUpdate(held: heldBytes) else { return nil }
    return window.update(held: heldBytes, spare: &spare)
  }

  // MARK: ends

  /// The upstream has reset the stream.
  func wasReset(by code: UInt32) {
    // After a complete response, an upstream that does not need the rest of the request says so (RFC 9113 section 8.1).
    if hasReceivedEnd {
      requestIsOver = true
      pending = ByteBuffer()
    } else {
      fail("it reset the stream: \(FrameCode.name(of: code))", isUnhandled: code == FrameCode.refusedStream)
    }
  }

  /// The stream ends without a complete response. What the client has not accepted of a complete one remains.
  /// - Parameters:
  ///   - reason: nil if the upstream closed the connection.
  ///   - isUnhandled: whether the upstream says that it has not handled the request.
  func fail(_ reason: String?, isUnhandled: Bool = false) {
    requestIsOver = true
    if hasReceivedEnd { return detach(resetBy: nil) }
    wasRefused = isUnhandled
    let last = owner
    release()
    detach(resetBy: nil)
    last?.upstreamFailed(.closed(fault: reason), self)
  }

  /// Resets a stream whose response is malformed (RFC 9113 section 8.1.1).
  func refuse(_ reason: String, _ code: UInt32 = FrameCode.protocolError) {
    let last = owner
    release()
    detach(resetBy: code)
    last?.upstreamFailed(.unreadable(reason), self)
  }

  /// Ends the exchange, and resets the stream unless both messages are complete.
  private func leave() {
    release()
    let isComplete = requestIsOver && hasReceivedEnd
    detach(resetBy: id == 0 || isComplete ? nil : hasReceivedEnd ? FrameCode.noError : FrameCode.cancel)
  }

  private func release() {
    guard owner != nil else { return }
    owner = nil
    target.requestEnded()
    held = []
    heldBytes = 0
    last = nil
  }

  private func detach(resetBy code: UInt32?) {
    guard let last = connection else { return }
    connection = nil
    pending = ByteBuffer()
    last.ended(self, grown: window.grown, resetBy: code)
  }
}

/// How many bytes of DATA an upstream may send on a stream, before the gateway says that it may send more.
///
/// Attack: slow clients of large responses. The gateway holds a window of each. The window grows only while the client
/// accepts everything, and what all streams of a connection have more than at first is bounded.
struct ReceiveWindow {
  /// The default of RFC 9113 section 6.9.2, so that the upstream need not be told.
  private static let first = 65_535
  private static let most = 1024 * 1024

  private var left = ReceiveWindow.first
  private var full = ReceiveWindow.first

  /// By how many bytes the window is larger than at first.
  var grown: Int { full - Self.first }

  /// The upstream has sent bytes.
  /// - Returns: false if it may not send so many.
  mutating func take(_ count: Int) -> Bool {
    left -= count
    return left >= 0
  }

  /// Whether half of the window is used.
  /// - Parameter held: how many bytes the client has not accepted.
  func needsUpdate(held: Int) -> Bool { left + held <= full / 2 }

  /// - Parameter spare: by how many bytes windows may still grow.
  /// - Returns: how many more bytes the upstream may send.
  mutating func update(held: Int, spare: inout Int) -> Int {
    if held == 0, full < Self.most, spare >= full {
      spare -= full
      full *= 2
    }
    let bytes = full - left - held
    left += bytes
    return bytes
  }
}

extension MessageFault {
  /// Why the head or the body of a response cannot be read, for the operator.
  var wordsOfAnswer: String {
    if case .malformed(let text) = self { text } else { "the head is too large" }
  }
}
