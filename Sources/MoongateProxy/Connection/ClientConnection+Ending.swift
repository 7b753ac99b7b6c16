import NIOCore

/// The end of an exchange and of the connection.
extension ClientConnection {
  /// The connection or the stream has ended.
  func ended() {
    recordEnd()
    let last = upstream
    phase = .closed
    serial &+= 1
    if placeInLoop >= 0, !isStream { loop.metrics.connections[.http1].close() }
    permit?.end()
    permit = nil
    addressUse = nil
    loop.remove(self)
    last?.close()
    boundSession = nil
    input = ByteBuffer()
  }

  /// The response is written and the request is read. Continues with the next request, or closes.
  func finish() {
    recordEnd()
    boundSession = nil
    exchange.route = nil
    exchange.session = nil
    exchange.upstreamHead = ByteBuffer()
    wire?.flush()
    guard !isClosed else { return }
    if exchange.closesAfter || inputHasEnded && input.readableBytes == 0 {
      if input.readableBytes == 0, exchange.requestIsDone {
        phase = .lingering(Lingering())
        whenWritten { $0.wire?.end() }
      } else {
        linger()
      }
      return
    }
    phase = .reading
    lastActivity = loop.now
    began = lastActivity
    process()
  }

  /// Closes so that the client can still read the response. If bytes are unread, a plain close makes the system send a
  /// reset, which can overtake the response.
  func linger() {
    switch phase {
    case .closed, .lingering: return
    case .reading, .looking, .exchanging, .collecting, .own, .refused, .tunnel: break
    }
    recordEnd()
    phase = .lingering(Lingering())
    lastActivity = loop.now
    input = ByteBuffer()
    whenWritten { connection in
      if connection.inputHasEnded {
        connection.wire?.end()
      } else {
        connection.wire?.endOutput()
        connection.resumeReading()
      }
    }
  }

  /// Calls the closure when the system has taken all written bytes. Closing earlier would drop bytes that still wait.
  private func whenWritten(_ body: @escaping (ClientConnection) -> Void) {
    guard let wire else { return }
    let written = wire.eventLoop.makePromise(of: Void.self)
    wire.send(ByteBuffer(), promise: written)
    wire.flush()
    written.futureResult.assumeIsolated().whenComplete { [weak self] _ in
      guard let self, case .lingering(var lingering) = self.phase else { return }
      lingering.responseIsOut = true
      self.phase = .lingering(lingering)
      self.lastActivity = self.loop.now
      self.began = self.lastActivity
      body(self)
    }
  }

  /// Closes at once. The client must see that an unfinished response is incomplete.
  func abort() {
    guard !isClosed else { return }
    recordEnd()
    exchange.pending = nil
    let last = upstream
    phase = .closed
    last?.close()
    wire?.end()
  }
}
