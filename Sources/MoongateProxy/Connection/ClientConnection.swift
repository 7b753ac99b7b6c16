import MoongateCore
import NIOCore
import NIOHTTPTypes

/// One client connection, or one stream of HTTP/2. It reads requests, authorizes them, and answers them in order.
///
/// It handles one request at a time. Later requests wait, bounded by back-pressure, until the current response is
/// complete. Requests for upstreams and for the gateway itself can therefore follow each other in any order.
///
/// `ConnectionState` owns the phase and says what an event leads to; `perform` does it.
///
/// A request's lookup and connect refer to this object strongly, because the first weak reference would make
/// every later retain and release of it slower. A connect ends after its timeout, `SessionCache` bounds the number of
/// lookups, and `ConnectionState.serial` tells both whether their request has ended.
package final class ClientConnection: ChannelDuplexHandler, LoopConnection, UpstreamClient {
  package typealias InboundIn = ByteBuffer
  package typealias InboundOut = HTTPRequestPart
  package typealias OutboundIn = HTTPResponsePart
  package typealias OutboundOut = ByteBuffer

  /// The maximum size in bytes of a request body for the gateway itself. `BodyReader` checks it too, because the admin
  /// listener has no `ClientConnection`.
  package static let maxOwnBody = 64 * 1024

  let loop: ProxyLoop
  let isSecure: Bool
  /// Whether this is a stream of an HTTP/2 connection. Only the connection is counted.
  let isStream: Bool
  let makeInner: () throws -> Void
  var hasInner = false
  /// nil before this is added to a pipeline or a stream, and after its end.
  var wire: (any ClientWire)?
  /// The index in the event loop's list; -1 if it is in none.
  var placeInLoop = -1

  var state = ConnectionState()
  /// The request's part of the access log line.
  var loggedHead = LoggedHead()

  var peer: ClientAddress
  let known: PeerKnowledge
  /// The permit of the connection; nil for a stream, whose connection has the permit.
  var permit: ConnectionPermit?
  /// The request counter of the peer; nil for trusted proxies.
  var addressUse: AddressUse?
  var isProcessing = false
  var readIsHeld = false

  /// - Parameters:
  ///   - permit: the connection's permit if it has one. It is released at the end.
  ///   - known: shared by the streams of one HTTP/2 connection; nil for a connection.
  init(
    loop: ProxyLoop, isSecure: Bool, permit: ConnectionPermit? = nil, streamOf known: PeerKnowledge? = nil,
    inner: @escaping () throws -> Void
  ) {
    isStream = known != nil
    self.known = known ?? PeerKnowledge()
    self.loop = loop
    self.isSecure = isSecure
    self.permit = permit
    makeInner = inner
    peer = .unspecified
  }

  /// The connection to the upstream in `exchanging` and `tunnel`.
  var upstream: UpstreamConnection? { state.upstream }

  /// The session on which the tunnel or the event stream depends; nil for other requests.
  var boundSession: BoundSession? {
    get { state.service?.boundSession }
    set { state.service?.boundSession = newValue }
  }

  // MARK: ChannelHandler

  package func handlerAdded(context: ChannelHandlerContext) {
    wire = context
    if context.channel.isActive { begin(context) }
  }

  package func channelActive(context: ChannelHandlerContext) {
    begin(context)
    context.fireChannelActive()
  }

  private func begin(_ context: ChannelHandlerContext) {
    guard placeInLoop < 0, !state.isClosed else { return }
    state.opened(at: loop.now)
    let channel = context.channel
    // Attack: a connection that is reset before it is accepted has no address any more, so no limit per address counts
    // the requests that it brought. Only channels of tests have neither address.
    guard channel.remoteAddress != nil || channel.localAddress == nil else { return perform(state.abort()) }
    guard let admitted = permit ?? loop.admit(ConnectionPeer(channel)) else {
      return perform(state.abort())
    }
    permit = admitted
    (peer, known.mayForward) = (admitted.peer.address, admitted.peer.mayForward)
    addressUse = admitted.addressUse
    loop.metrics.connections[.http1].open()
    loop.add(self)
  }

  package func handlerRemoved(context: ChannelHandlerContext) { wire = nil }

  package func channelInactive(context: ChannelHandlerContext) {
    ended()
    context.fireChannelInactive()
  }

  package func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  package func channelRead(context: ChannelHandlerContext, data: NIOAny) { received(unwrapInboundIn(data)) }

  package func channelReadComplete(context: ChannelHandlerContext) { receivedAll() }

  package func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { becameWritable() }
    context.fireChannelWritabilityChanged()
  }

  package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case let event as ChannelEvent where event == .inputClosed: inputEnded()
    case is ChannelShouldQuiesceEvent: quiesce()
    default: context.fireUserInboundEventTriggered(event)
    }
  }

  package func read(context: ChannelHandlerContext) { if mayRead() { context.read() } }
}
