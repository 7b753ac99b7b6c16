import MoongateCore
import NIOCore

/// Events of the wire and of the clock.
extension ClientConnection {
  /// Starts to serve a stream of HTTP/2.
  /// - Parameters:
  ///   - peer: the peer of the stream's connection.
  ///   - use: the request counter of the connection.
  func begin(on stream: any ClientWire, peer: ClientAddress, use: AddressUse?) {
    wire = stream
    self.peer = peer
    addressUse = use
    state.hasOneRequest = true
    state.opened(at: loop.now)
    loop.add(self)
  }

  func received(_ bytes: ByteBuffer) {
    // The state needs to know this only while bytes wait.
    let takesAnswer = state.input.readableBytes == 0 || takesAnswer
    switch state.received(bytes, takesAnswer: takesAnswer, at: loop.now) {
    case .process: process(flushes: false)
    case let action: perform(action)
    }
    // Release the buffer, so that the channel can reuse it for reading.
    if state.input.readableBytes == 0 { state.input = ByteBuffer() }
  }

  /// Called after all bytes of one read, which are sent on together.
  func receivedAll() { upstream?.flush() }

  /// The client accepts bytes again.
  func becameWritable() {
    state.becameWritable(at: loop.now)
    upstream?.resumeReading()
    process()
  }

  /// The gateway is shutting down. An idle connection is closed after a short time (`checkTime`), because its client
  /// may be sending a request now.
  func quiesce() { state.isQuiescing = true }

  /// The client has closed its output.
  func inputEnded() { perform(state.inputEnded(takesAnswer: takesAnswer, at: loop.now)) }

  /// Whether more bytes may be read now. If not, `resumeReading` reads later.
  func mayRead() -> Bool {
    readIsHeld = state.holdsReads
    return !readIsHeld
  }

  /// Resumes a held read once more bytes may be read.
  func resumeReading() {
    guard readIsHeld, !state.holdsReads else { return }
    readIsHeld = false
    wire?.read()
  }

  /// The connection or the stream has ended.
  func ended() {
    recordEnd()
    let action = state.ended()
    if placeInLoop >= 0, !isStream { loop.metrics.connections[.http1].close() }
    permit?.end()
    permit = nil
    addressUse = nil
    loop.remove(self)
    perform(action)
  }

  /// Checks the timeouts. The event loop calls it ten times a second.
  func checkTime(_ now: NIODeadline) {
    let whileDraining = TimeAmount(loop.shared.idleWhileDraining)
    perform(state.checkTime(now, takesAnswer: takesAnswer, idleWhileDraining: whileDraining))
    checkSession(now)
  }

  /// Checks a bound session that has expired or may have ended.
  private func checkSession(_ now: NIODeadline) {
    guard let bound = boundSession else { return }
    if bound.isDoubted || !bound.session.isLive(at: loop.time(at: now).now) { checkBoundSession() }
  }
}
