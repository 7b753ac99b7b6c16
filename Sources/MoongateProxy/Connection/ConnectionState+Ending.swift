import NIOCore

/// The end of an exchange and of the connection.
extension ConnectionState {
  /// The response is written. Continues with the next request, or closes.
  ///
  /// Attack: bytes after the request of an HTTP/2 stream, of which something else is to be read as a request. A stream
  /// never reads a second head. It ends by its own frames.
  mutating func finish(at now: NIODeadline) -> ConnectionAction {
    guard !isClosed else { return .wait }
    if exchange.closesAfter || inputHasEnded && input.readableBytes == 0 {
      return input.readableBytes == 0 && exchange.requestIsDone ? closeWhenWritten() : linger(at: now)
    }
    lastActivity = now
    if hasOneRequest {
      phase = .lingering(Lingering(readsOn: false))
      input = ByteBuffer()
      return .wait
    }
    phase = .reading
    began = now
    return .process
  }

  /// Closes when the client has accepted the last response.
  mutating func closeWhenWritten() -> ConnectionAction {
    phase = .lingering(Lingering(readsOn: false))
    return .awaitWritten
  }

  /// Closes so that the client can still read the response, although bytes of the client may be unread.
  mutating func linger(at now: NIODeadline) -> ConnectionAction {
    switch phase {
    case .closed, .lingering: return .wait
    case .reading, .looking, .exchanging, .collecting, .own, .refused, .tunnel: break
    }
    phase = .lingering(Lingering(readsOn: true))
    lastActivity = now
    input = ByteBuffer()
    return .awaitWritten
  }

  /// Closes after the part of a truncated response that has arrived.
  ///
  /// Attack, or accident: a truncated response looks complete to a client of HTTP/1.0, to which the end of the
  /// connection is the end of the response. So it is reset, after the bytes that were good.
  mutating func cut(at now: NIODeadline) -> ConnectionAction {
    let endsByClose = endsByClose
    let action = linger(at: now)
    if endsByClose, case .lingering(var lingering) = phase {
      lingering.isCut = true
      phase = .lingering(lingering)
    }
    return action
  }

  /// Whether the client has a part of a response whose end is the end of the connection.
  private var endsByClose: Bool { exchange.answerHasBegun && exchange.framing == .untilClose }

  /// The system has taken all bytes that were written. Closing earlier would drop bytes that still wait.
  mutating func responseIsOut(at now: NIODeadline) -> ConnectionAction {
    guard case .lingering(var lingering) = phase else { return .wait }
    lingering.responseIsOut = true
    phase = .lingering(lingering)
    lastActivity = now
    began = now
    if lingering.isCut { return .reset(waits: true) }
    return lingering.readsOn && !inputHasEnded ? .closeOutput : .close
  }

  /// Closes at once. The client must see that an unfinished response is incomplete.
  mutating func abort() -> ConnectionAction {
    guard !isClosed else { return .wait }
    let endsByClose = endsByClose && exchange.pending == nil
    exchange.pending = nil
    let last = upstream
    phase = .closed
    return endsByClose ? .resetAndClose(last) : .closeBoth(last)
  }

  /// The connection or the stream has ended.
  mutating func ended() -> ConnectionAction {
    let last = upstream
    phase = .closed
    serial &+= 1
    input = ByteBuffer()
    return last.map { .closeUpstream($0) } ?? .wait
  }
}
