import NIOCore

/// Performs the actions of `ConnectionState`.
extension ClientConnection {
  func perform(_ action: ConnectionAction) {
    switch action {
    case .wait: break
    case .process: process()
    case .dropBody:
      wire?.flush()
      process()
    case .serve(let head): begin(head)
    case .serveWithoutStore(let head):
      receive(head, found: .unavailable)
      process()
    case .forward(let data, let upstream): forward(data, to: upstream)
    case .endBody(let upstream):
      if upstream.carriesFrames {
        upstream.endBody(trailers: trailersForService)
      } else if state.exchange.isChunked {
        upstream.write(ByteBuffer.lastChunk(nil))
      }
    case .sendContinue:
      wire?.send(ByteBuffer(staticString: "HTTP/1.1 100 Continue\r\n\r\n"))
      wire?.flush()
    case .deliver(let own): deliver(own)
    case .tunnel(let bytes, let upstream): upstream.write(bytes)
    case .refuseUnreadable(let refusal, let head):
      beginRecord(nil)
      if let head { readFacts(of: head) }
      refuse(refusal.code, reason: refusal.reason, unread: true)
    case .refuse(let refusal, let head):
      refuse(refusal.code, reason: refusal.reason, head: head, unread: true)
    case .refuseBody(let refusal, let upstream):
      upstream.close()
      if state.exchange.answerHasBegun {
        abort()
      } else {
        refuse(refusal.code, reason: refusal.reason, unread: true)
      }
    case .failSilent(let upstream): upstreamFailed(.silent, upstream)
    case .finish: finish()
    case .linger: linger()
    case .abort: abort()
    case .awaitWritten: awaitWritten()
    case .close: wire?.end()
    case .closeOutput:
      wire?.endOutput()
      resumeReading()
    case .closeUpstreamOutput(let upstream): upstream.closeOutput()
    case .closeUpstream(let upstream): upstream.close()
    case .closeBoth(let upstream):
      upstream?.close()
      wire?.end()
    case .reset(let waits): if !waits || !(wire?.hasBytesOnTheWay ?? false) { wire?.cut() }
    case .resetAndClose(let upstream):
      upstream?.close()
      wire?.cut()
    }
  }

  /// Handles the received bytes as far as possible.
  /// - Parameter flushes: whether to flush what the upstream gets; false within a read, after which `receivedAll` does.
  func process(flushes: Bool = true) {
    guard !isProcessing else { return }
    isProcessing = true
    while true {
      // The state needs to know this only while bytes wait.
      let takesAnswer = state.input.readableBytes > 0 && takesAnswer
      let action = state.next(takesAnswer: takesAnswer, spare: &loop.spare.fields)
      if case .wait = action { break }
      perform(action)
    }
    isProcessing = false
    if flushes { upstream?.flush() }
    if state.inputHasEnded { perform(state.endIfIncomplete(takesAnswer: takesAnswer)) }
    resumeReading()
  }

  /// Serves a new request.
  private func begin(_ head: RequestHead) {
    beginRecord(head)
    receive(head, found: nil)
    // The next head reuses the array. The decoder empties it then, when this head no longer shares it.
    loop.spare.fields = head.fields
  }

  func forward(_ data: ByteBuffer, to upstream: UpstreamConnection) {
    if state.exchange.isChunked, !upstream.carriesFrames {
      Self.writeChunk(data) { upstream.write($0) }
    } else {
      upstream.write(data)
    }
  }

  private func finish() {
    recordEnd()
    wire?.flush()
    perform(state.finish(at: loop.now))
  }

  /// Closes so that the client can still read what was written.
  func linger() {
    recordEnd()
    perform(state.linger(at: loop.now))
  }

  /// Closes at once, because the response is incomplete.
  func abort() {
    recordEnd()
    perform(state.abort())
  }

  private func awaitWritten() {
    guard let wire else { return }
    let written = wire.eventLoop.makePromise(of: Void.self)
    wire.send(ByteBuffer(), promise: written)
    wire.flush()
    written.futureResult.assumeIsolated().whenComplete { [weak self] _ in
      guard let self else { return }
      self.perform(self.state.responseIsOut(at: self.loop.now))
    }
  }
}
