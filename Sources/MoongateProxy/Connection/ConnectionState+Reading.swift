import NIOCore

/// The bytes of requests.
extension ConnectionState {
  /// The maximum number of bytes that are read beyond the current request.
  private static let maxWaiting = 64 * 1024
  /// The maximum number of bytes that are dropped after the last response.
  private static let maxDropped = 1024 * 1024

  /// The client has sent bytes.
  /// - Parameter takesAnswer: whether the client accepts more bytes.
  mutating func received(_ bytes: ByteBuffer, takesAnswer: Bool, at now: NIODeadline) -> ConnectionAction {
    var isReading = false
    switch phase {
    case .tunnel(let upstream, _): return .tunnel(bytes, to: upstream)
    case .lingering(var lingering):
      if lingering.responseIsOut { lastActivity = now }
      lingering.dropped += bytes.readableBytes
      phase = .lingering(lingering)
      return lingering.dropped > Self.maxDropped ? lingering.close : .wait
    case .closed: return .wait
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
    return .process
  }

  /// The client accepts bytes again.
  mutating func becameWritable(at now: NIODeadline) {
    lastActivity = now
    // The next head was not read while responses waited.
    if case .reading = phase { began = now }
  }

  /// The client has closed its output. It may still wait for its response.
  /// - Parameter takesAnswer: whether the client accepts more bytes.
  mutating func inputEnded(takesAnswer: Bool, at now: NIODeadline) -> ConnectionAction {
    inputHasEnded = true
    switch phase {
    case .tunnel(let upstream, _):
      lastActivity = now
      return .closeUpstreamOutput(upstream)
    case .lingering(let lingering): return lingering.responseIsOut ? lingering.close : .wait
    case .closed: return .close
    case .reading, .looking, .exchanging, .collecting, .own, .refused:
      // A client that no longer sends may be gone, so an event stream may be silent only for the route's timeout.
      if exchange.isEventStream { lastActivity = now }
      return endIfIncomplete(takesAnswer: takesAnswer)
    }
  }

  /// After the client has closed its output, drops a request that cannot become complete. A complete request is still
  /// answered, and the client still gets the responses that it has not accepted yet.
  func endIfIncomplete(takesAnswer: Bool) -> ConnectionAction {
    guard inputHasEnded else { return .wait }
    switch phase {
    // The next request may be complete. It waits until the client has accepted the last response.
    case .reading: return input.readableBytes > 0 && !takesAnswer ? .wait : .linger
    case .refused: return .linger
    case .collecting: return exchange.requestIsDone ? .wait : .linger
    // Without an upstream, the body still waits in `input`.
    case .exchanging(let service): return exchange.requestIsDone || service.upstream == nil ? .wait : .close
    case .looking, .own, .tunnel, .lingering, .closed: return .wait
    }
  }

  /// Back-pressure: whether bytes are not read from the client, because the upstream accepts none.
  ///
  /// It changes nothing. It is mutating because a plain getter would first copy the whole state, for every read.
  var holdsReads: Bool {
    mutating get {
      if input.readableBytes >= Self.maxWaiting { return true }
      switch phase {
      case .exchanging(let service): return !exchange.requestIsDone && !(service.upstream?.isWritable ?? true)
      case .tunnel(let upstream, _): return !upstream.isWritable
      case .reading, .looking, .collecting, .own, .refused, .lingering, .closed: return false
      }
    }
  }

  // MARK: requests

  /// The next action for the received bytes; `wait` if another event must come first.
  /// - Parameters:
  ///   - takesAnswer: whether the client accepts more bytes.
  ///   - spare: an array for header fields that decoders reuse.
  mutating func next(takesAnswer: Bool, spare: inout [HeadField]) -> ConnectionAction {
    switch phase {
    case .reading: readHead(takesAnswer: takesAnswer, &spare)
    case .exchanging(let service): readBody(for: service)
    case .collecting: collectBody()
    case .refused: dropBody()
    case .looking, .own, .tunnel, .lingering, .closed: .wait
    }
  }

  private mutating func readHead(takesAnswer: Bool, _ spare: inout [HeadField]) -> ConnectionAction {
    // Attack: a client sends endless requests and reads no response. The next request waits until the client has
    // accepted the last response.
    guard input.readableBytes > 0, takesAnswer else { return .wait }
    do throws(MessageFault) {
      guard let head = try decoder.next(&input, spare: &spare) else { return .wait }
      serial &+= 1
      exchange = Exchange(head)
      return .serve(head)
    } catch {
      return refuseUnreadable(MessageRefusal(error))
    }
  }

  /// Refuses bytes that are no request. Later bytes cannot be read either, so the connection closes.
  mutating func refuseUnreadable(_ refusal: MessageRefusal) -> ConnectionAction {
    let head = decoder.partialHead(input)
    exchange = Exchange()
    exchange.isHead = head?.method == .head
    exchange.requestIsDone = true
    return .refuseUnreadable(refusal, head: head)
  }

  private mutating func readBody(for service: ServiceExchange) -> ConnectionAction {
    guard !exchange.requestIsDone, let upstream = service.upstream else { return .wait }
    do throws(MessageFault) {
      switch try exchange.body.next(&input) {
      case .incomplete: return .wait
      case .data(let data):
        if let left = exchange.bodyLeft {
          guard data.readableBytes <= left else { return refuseBody(.tooLarge, of: service, upstream) }
          exchange.bodyLeft = left - data.readableBytes
        }
        exchange.bodyWindow.bytes += data.readableBytes
        if service.sentBody != nil { service.keep(data) }
        return .forward(data, to: upstream)
      case .end:
        exchange.requestIsDone = true
        return .endBody(of: upstream)
      }
    } catch {
      endRequest()
      return refuseBody(MessageRefusal(error), of: service, upstream)
    }
  }

  /// Refuses the rest of a body. The request to the upstream stays incomplete, so that no later bytes can be taken for
  /// a request.
  mutating func refuseBody(
    _ refusal: MessageRefusal, of service: ServiceExchange, _ upstream: UpstreamConnection
  ) -> ConnectionAction {
    service.upstream = nil
    return .refuseBody(refusal, upstream: upstream)
  }

  private mutating func collectBody() -> ConnectionAction {
    guard case .collecting(var own) = phase else { return .wait }
    // Release the phase's copy, so that the body grows in place.
    phase = .own
    do throws(MessageFault) {
      while true {
        switch try exchange.body.next(&input) {
        case .incomplete:
          phase = .collecting(own)
          return .wait
        case .data(var data):
          guard own.body.readableBytes + data.readableBytes <= ClientConnection.maxOwnBody else {
            return .refuse(.tooLarge, head: own.head)
          }
          own.body.writeBuffer(&data)
        case .end:
          exchange.requestIsDone = true
          return .deliver(own)
        }
      }
    } catch {
      endRequest()
      return .refuse(MessageRefusal(error), head: nil)
    }
  }

  private mutating func dropBody() -> ConnectionAction {
    do throws(MessageFault) {
      while true {
        switch try exchange.body.next(&input) {
        case .data: continue
        case .incomplete: return .wait
        case .end:
          exchange.requestIsDone = true
          return .finish
        }
      }
    } catch {
      return .linger
    }
  }

  /// Nothing after the received bytes can be read as a request.
  private mutating func endRequest() {
    exchange.keepsAlive = false
    exchange.requestIsDone = true
  }
}
