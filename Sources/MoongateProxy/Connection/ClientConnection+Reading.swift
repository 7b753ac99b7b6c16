import MoongateCore
import NIOCore

/// Events of the wire, and the bytes of requests.
extension ClientConnection {
  /// Starts to serve a stream of HTTP/2.
  /// - Parameters:
  ///   - peer: the peer of the stream's connection.
  ///   - use: the request counter of the connection.
  func begin(on stream: any ClientWire, peer: ClientAddress, use: AddressUse?) {
    wire = stream
    self.peer = peer
    addressUse = use
    lastActivity = loop.now
    loop.add(self)
  }

  func received(_ bytes: ByteBuffer) {
    let now = loop.now
    var isReading = false
    switch phase {
    case .tunnel(let upstream): return upstream.write(bytes)
    case .lingering(var lingering):
      if lingering.responseIsOut { lastActivity = now }
      lingering.dropped += bytes.readableBytes
      phase = .lingering(lingering)
      if lingering.dropped > 1024 * 1024 { wire?.end() }
      return
    case .closed: return
    // Attack: a client that accepts no response sends its next request byte by byte, to stay connected or to postpone
    // the timeout of a silent upstream.
    case .reading:
      isReading = true
      if input.readableBytes == 0 || takesAnswer { lastActivity = now }
    case .exchanging: if !exchange.requestIsDone { lastActivity = now }
    case .looking: break
    case .collecting, .own, .refused: lastActivity = now
    }
    if input.readableBytes == 0 {
      if isReading { began = now }
      input = bytes
    } else {
      input.writeImmutableBuffer(bytes)
    }
    process()
    // Release the buffer, so that the channel can reuse it for reading.
    if input.readableBytes == 0 { input = ByteBuffer() }
  }

  /// Called after all bytes of one read.
  func receivedAll() { upstream?.flush() }

  /// The client accepts bytes again.
  func becameWritable() {
    lastActivity = loop.now
    // The next head was not read while responses waited.
    if case .reading = phase { began = lastActivity }
    upstream?.resumeReading()
    process()
    upstream?.flush()
  }

  /// The gateway is shutting down. An idle connection is closed after a short time (`checkTime`), because its client
  /// may be sending a request now.
  func quiesce() { isQuiescing = true }

  /// The client has closed its output. It may still wait for its response.
  func inputEnded() {
    inputHasEnded = true
    switch phase {
    case .tunnel(let upstream):
      lastActivity = loop.now
      upstream.closeOutput()
    case .lingering(let lingering): if lingering.responseIsOut { wire?.end() }
    case .closed: wire?.end()
    case .reading, .looking, .exchanging, .collecting, .own, .refused: endIfIncomplete()
    }
  }

  /// After the client has closed its output, drops a request that cannot become complete. A complete request is still
  /// answered.
  private func endIfIncomplete() {
    switch phase {
    case .reading, .refused: wire?.end()
    case .collecting: if !exchange.requestIsDone { wire?.end() }
    // Without an upstream, the body still waits in `input`.
    case .exchanging(let upstream): if !exchange.requestIsDone, upstream != nil { wire?.end() }
    case .looking, .own, .tunnel, .lingering, .closed: break
    }
  }

  /// Whether more bytes may be read now. If not, `resumeReading` reads later.
  func mayRead() -> Bool {
    readIsHeld = holdsReads
    return !readIsHeld
  }

  /// Back-pressure: bytes that the upstream does not accept are not read from the client.
  private var holdsReads: Bool {
    if input.readableBytes >= Self.maxWaiting { return true }
    switch phase {
    case .exchanging(let upstream?): return !exchange.requestIsDone && !upstream.isWritable
    case .tunnel(let upstream): return !upstream.isWritable
    case .reading, .looking, .exchanging, .collecting, .own, .refused, .lingering, .closed: return false
    }
  }

  /// Resumes a held read once more bytes may be read.
  func resumeReading() {
    guard readIsHeld, !holdsReads else { return }
    readIsHeld = false
    wire?.read()
  }

  // MARK: requests

  /// Handles the received bytes as far as possible.
  func process() {
    guard !isProcessing else { return }
    isProcessing = true
    var goesOn = true
    while goesOn {
      switch phase {
      case .reading: goesOn = readHead()
      case .exchanging: goesOn = forwardBody()
      case .collecting: goesOn = collectOwnBody()
      case .refused: goesOn = dropBody()
      case .looking, .own, .tunnel, .lingering, .closed: goesOn = false
      }
    }
    isProcessing = false
    if inputHasEnded { endIfIncomplete() }
    resumeReading()
  }

  private func readHead() -> Bool {
    // Attack: a client sends endless requests and reads no response. The next request waits until the client has
    // accepted the last response.
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
    receive(head, found: nil)
    // The next head reuses the array. The decoder empties it then, when this head no longer shares it.
    loop.spareFields = head.fields
    return true
  }

  func sendContinue() {
    wire?.send(ByteBuffer(staticString: "HTTP/1.1 100 Continue\r\n\r\n"))
    wire?.flush()
  }

  /// Refuses malformed bytes. Later bytes cannot be read either, so the connection closes.
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
}
