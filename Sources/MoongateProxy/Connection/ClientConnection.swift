import MoongateCore
import NIOCore
import NIOHTTPTypes

/// One client connection, or one stream of HTTP/2. It reads requests, authorizes them, and answers them in order.
///
/// It handles one request at a time. Later requests wait in `input`, bounded by back-pressure, until the current
/// response is complete. Requests for upstreams and for the gateway itself can therefore follow each other in any
/// order.
///
///     reading ── head ──> looking (asks the store) ──> exchanging (an upstream responds) ─────────┐
///        │                    │                                                                    ├──> reading
///        │                    └── refused (drops the rest of the request body) ────────────────────┤    or lingering
///        ├── collecting (the request body) ──> own (the gateway responds) ────────────────────────┘       │
///        └── exchanging ── 101 ──> tunnel ──> lingering (the client may still read) ──> closed <───────────┘
package final class ClientConnection: ChannelDuplexHandler {
  package typealias InboundIn = ByteBuffer
  package typealias InboundOut = HTTPRequestPart
  package typealias OutboundIn = HTTPResponsePart
  package typealias OutboundOut = ByteBuffer

  /// The state of the current request. Each case carries the values that exist only in it. Large values are indirect,
  /// so that reading the phase copies one word.
  enum Phase {
    /// Waits for a head, or for the rest of one.
    case reading
    /// The store is asked for the session or token of the request.
    indirect case looking(RequestHead)
    /// An upstream responds. It is nil until a connection to it is open.
    case exchanging(UpstreamConnection?)
    /// Collects the body of a request for the gateway itself.
    indirect case collecting(OwnRequest)
    /// The gateway itself responds.
    case own
    /// The request is refused, and the rest of its body is read and dropped.
    case refused
    /// Bytes pass in both directions after a 101.
    case tunnel(UpstreamConnection)
    /// The last response was written. Bytes of the client are dropped until it closes.
    indirect case lingering(Lingering)
    case closed
  }

  /// A request for the gateway itself, until its body is complete.
  struct OwnRequest {
    let head: RequestHead
    var body = ByteBuffer()
  }

  struct Lingering {
    /// The number of bytes that the client sent since.
    var dropped = 0
    /// Whether the system has taken all bytes that were written.
    var responseIsOut = false
  }

  /// The session on which a tunnel or an event stream depends.
  struct BoundSession {
    var session: CachedSession
    /// Whether the session may have ended, and the store has not been asked since.
    var isDoubted: Bool
    var isBeingChecked = false
  }

  /// The maximum number of bytes that are read beyond the current request.
  static let maxWaiting = 64 * 1024
  /// The maximum size in bytes of a request body for the gateway itself. `BodyReader` checks it too, because the admin
  /// listener has no `ClientConnection`.
  package static let maxOwnBody = 64 * 1024

  let loop: ProxyLoop
  let isSecure: Bool
  /// Whether this is a stream of an HTTP/2 connection. Only the connection is counted.
  let isStream: Bool
  let makeInner: () throws -> Void
  var innerIsThere = false
  /// nil before this is added to a pipeline or a stream, and after its end.
  var wire: (any ClientWire)?
  /// The index in the event loop's list; -1 if it is in none.
  var placeInLoop = -1

  var phase = Phase.reading
  var input = ByteBuffer()
  var decoder = RequestDecoder()
  var exchange = Exchange()
  /// The request's part of the access log line.
  var loggedHead = LoggedHead()
  /// Increases with each request, so that callbacks of an earlier request have no effect.
  var serial: UInt64 = 0
  /// Set for a tunnel, and for an event stream in `exchanging`.
  var boundSession: BoundSession?

  var peer: ClientAddress
  let known: PeerKnowledge
  /// The permit of the connection; nil for a stream, whose connection has the permit.
  var permit: ConnectionPermit?
  /// The request counter of the peer; nil for trusted proxies.
  var addressUse: AddressUse?
  /// When the last byte that the phase waits for arrived or left.
  var lastActivity = NIODeadline.uptimeNanoseconds(0)
  /// When the head or the body of a request for the gateway itself began, or when the last response was out.
  var began = NIODeadline.uptimeNanoseconds(0)
  var isProcessing = false
  var readIsHeld = false
  var inputHasEnded = false
  var isQuiescing = false

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
  var upstream: UpstreamConnection? {
    switch phase {
    case .exchanging(let upstream): upstream
    case .tunnel(let upstream): upstream
    case .reading, .looking, .collecting, .own, .refused, .lingering, .closed: nil
    }
  }

  var isClosed: Bool { if case .closed = phase { true } else { false } }

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
    guard placeInLoop < 0, !isClosed else { return }
    lastActivity = loop.now
    peer = context.channel.remoteAddress.flatMap { ClientAddress($0) } ?? .unspecified
    guard let admitted = permit ?? loop.admit(peer) else {
      phase = .closed
      return context.close(promise: nil)
    }
    permit = admitted
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

extension ClientAddress {
  /// The address of a socket; nil if it has none, such as a Unix socket.
  init?(_ address: SocketAddress) {
    guard let text = address.ipAddress, let parsed = IPAddressText.parse(text.prefix { $0 != "%" }.utf8.map { $0 })
    else { return nil }
    self = parsed
  }
}
