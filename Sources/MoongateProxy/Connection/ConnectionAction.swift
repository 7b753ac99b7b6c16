import MoongateCore
import NIOCore

/// What `ConnectionState` asks for after an event. `ClientConnection.perform` performs every action.
enum ConnectionAction {
  /// Nothing happens before the next event.
  case wait
  /// Handle the bytes that were received.
  case process
  /// Flush the response, and read the rest of the request's body.
  case dropBody

  /// Authorize a request, and send it on or answer it.
  case serve(RequestHead)
  /// Serve a request whose session or token is unknown, because the store does not answer.
  case serveWithoutStore(RequestHead)
  /// Send a part of the request's body to the upstream.
  case forward(ByteBuffer, to: UpstreamConnection)
  /// Tell the upstream that the request's body is complete.
  case endBody(of: UpstreamConnection)
  /// Tell the client to send its body.
  case sendContinue
  /// Deliver a complete request to the gateway itself.
  case deliver(ConnectionState.OwnRequest)
  /// Send bytes through a tunnel to the upstream.
  case tunnel(ByteBuffer, to: UpstreamConnection)

  /// Refuse bytes that are no request. They get a record of their own. `head` has what was read of the head, if the
  /// request line was read.
  case refuseUnreadable(MessageRefusal, head: RequestHead?)
  /// Refuse a request, and close, because the end of its bytes is unknown. `head` is for the record of the operator.
  case refuse(MessageRefusal, head: RequestHead?)
  /// Close the connection to the upstream. Then refuse the request, or abort if its answer has begun.
  case refuseBody(MessageRefusal, upstream: UpstreamConnection)
  /// Treat the upstream as failed, because it is silent.
  case failSilent(UpstreamConnection)

  /// Record the exchange, and continue with the next request or close.
  case finish
  /// Record the exchange, and close so that the client can still read the response.
  case linger
  /// Record the exchange, and close at once, because the response is incomplete.
  case abort
  /// Report `ConnectionState.responseIsOut` when the system has taken all written bytes.
  case awaitWritten
  /// Close the client's connection.
  case close
  /// Close the output to the client, which can still read the response, and continue to read.
  case closeOutput
  /// Close the output to the upstream of a tunnel.
  case closeUpstreamOutput(UpstreamConnection)
  /// Close the connection to the upstream.
  case closeUpstream(UpstreamConnection)
  /// Close the client's connection and the one to the upstream.
  case closeBoth(UpstreamConnection?)
  /// Reset the client's connection, so that the client sees that the response is incomplete. If `waits`, do so only if
  /// the client has acknowledged all bytes; otherwise the state asks again.
  case reset(waits: Bool)
  /// Reset the client's connection at once, and close the one to the upstream.
  case resetAndClose(UpstreamConnection?)
}

/// Why the bytes of a client are refused. Nothing after them is read as a request.
struct MessageRefusal: Equatable {
  let code: RefusalCode
  /// For the operator.
  var reason: String?

  static let timeout = Self(code: .timeout)
  static let tooLarge = Self(code: .tooLarge)
}

extension MessageRefusal {
  init(_ fault: MessageFault) {
    switch fault {
    case .malformed(let reason): self.init(code: .badRequest, reason: reason)
    case .headTooLarge: self.init(code: .headersTooLarge)
    case .versionNotSupported: self.init(code: .versionNotSupported)
    case .methodNotAllowed: self.init(code: .methodNotAllowed)
    }
  }
}
