import MoongateCore
import NIOCore
import NIOTLS

#if canImport(Glibc)
  import Glibc
#endif

/// Why an exchange with an upstream failed.
enum UpstreamFailure {
  /// The connection ended. `fault` says why, if it was not the upstream that closed it.
  case closed(fault: String?)
  /// The response is ambiguous or malformed.
  case unreadable(String)
  /// The upstream sent nothing within the time limit.
  case silent

  /// The cause if the response had begun.
  var causeWithinAnswer: UpstreamFailureCause {
    switch self {
    case .closed: .cut
    case .unreadable: .unreadable
    case .silent: .silent
    }
  }

  /// The reason, if it is known more exactly than by the cause.
  var reason: String? {
    switch self {
    case .closed(let fault): fault
    case .unreadable(let reason): reason
    case .silent: nil
    }
  }
}

/// The side of one exchange towards an upstream: a connection of HTTP/1.1, or a stream of HTTP/2.
///
/// The exchange writes the head of a request in HTTP/1.1, then its body. The response comes by `UpstreamClient`. What
/// the methods do is up to the two subclasses.
class UpstreamConnection {
  let target: UpstreamTarget
  var idleSince = NIODeadline.uptimeNanoseconds(0)

  init(target: UpstreamTarget) { self.target = target }

  var isOpen: Bool { false }
  /// Whether the upstream accepts more bytes of the request.
  var isWritable: Bool { false }
  /// Whether bodies have frames of their own, so that none is chunked (RFC 9112 section 7.1).
  var carriesFrames: Bool { false }
  /// Whether the upstream says that it has not handled the request, so that a request of any method may be sent again.
  var isUnhandled: Bool { false }
  /// The time since the upstream last took bytes of the request; nil if it is unknown.
  var sinceBytesMoved: TimeAmount? { nil }

  /// Starts an exchange.
  /// - Parameter hasBody: whether a body follows the head.
  func begin(for owner: any UpstreamClient, toHead: Bool, wantsUpgrade: Bool, hasBody: Bool = false) {}

  /// Writes the head, and then bytes of the body.
  func write(_ bytes: ByteBuffer) {}

  /// Ends a body that has frames of its own.
  /// - Parameter trailers: the lines of the trailers.
  func endBody(trailers: ByteBuffer?) {}

  func flush() {}

  /// Ends the exchange. What was used can be used again if both messages are complete.
  func end(reusable: Bool) {}

  /// Ends the exchange, or the idle connection, at once.
  func close() {}

  /// Detects a peer that vanishes, because the exchange may be silent for a long time.
  func watchPeer() {}

  /// The client has closed its side of a tunnel.
  func closeOutput() {}

  /// Resumes a held read once the client side accepts bytes again.
  func resumeReading() {}
}

/// One connection of HTTP/1.1 to an upstream. It reads responses and passes them to the client connection that uses it.
///
/// It is either used by one exchange or idle in its target. Bytes that arrive while it is idle close it, because they
/// would be taken for the response to the next request.
final class UpstreamHTTP1: UpstreamConnection, ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private static let maxInterim = 16

  private let spare: SpareFields
  private var ready: EventLoopPromise<Void>?
  private var context: ChannelHandlerContext?
  /// The channel of `context`, which takes longer to find there.
  private var channel: (any Channel)?
  private var owner: (any UpstreamClient)?
  private var input = ByteBuffer()
  private var decoder = ResponseDecoder()
  private var body: BodyDecoder?
  private var keepsAlive = true
  private var toHead = false
  private var wantsUpgrade = false
  private var interims = 0
  private var isTunnel = false
  private var readIsHeld = false
  /// Why the connection failed on this side, such as a TLS record that cannot be decrypted.
  private var fault: String?

  init(target: UpstreamTarget, spare: SpareFields, ready: EventLoopPromise<Void>?) {
    self.spare = spare
    self.ready = ready
    super.init(target: target)
  }

  override var isOpen: Bool { channel?.isActive ?? false }
  override var isWritable: Bool { channel?.isWritable ?? false }

  // MARK: for the client's connection

  override func begin(for owner: any UpstreamClient, toHead: Bool, wantsUpgrade: Bool, hasBody: Bool = false) {
    self.owner = owner
    target.requestBegan()
    self.toHead = toHead
    self.wantsUpgrade = wantsUpgrade
    interims = 0
    body = nil
  }

  override func write(_ bytes: ByteBuffer) { context?.write(wrapOutboundOut(bytes), promise: nil) }

  override func flush() { context?.flush() }

  /// The connection becomes idle, or is closed if it cannot be reused.
  override func end(reusable: Bool) {
    release()
    resumeReading()
    guard reusable, keepsAlive, isOpen, input.readableBytes == 0, !isTunnel else { return close() }
    target.putIdle(self)
  }

  override func close() {
    release()
    context?.close(promise: nil)
  }

  private func release() {
    if owner != nil { target.requestEnded() }
    owner = nil
  }

  /// The time since the upstream last acknowledged sent bytes.
  override var sinceBytesMoved: TimeAmount? { channel.flatMap { SocketProgress.sinceBytesMoved($0) } }

  override func watchPeer() { if let channel { Keepalive.enable(channel) } }

  override func closeOutput() { context?.close(mode: .output, promise: nil) }

  override func resumeReading() {
    guard readIsHeld else { return }
    readIsHeld = false
    context?.read()
  }

  // MARK: ChannelHandler

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    channel = context.channel
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    channel = nil
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let bytes = unwrapInboundIn(data)
    guard let owner else { return close() }
    if isTunnel { return owner.tunnelRead(bytes) }
    if input.readableBytes == 0 { input = bytes } else { input.writeImmutableBuffer(bytes) }
    read(for: owner)
    if input.readableBytes == 0 { input = ByteBuffer() }
  }

  func channelReadComplete(context: ChannelHandlerContext) { owner?.flushAnswer() }

  func channelWritabilityChanged(context: ChannelHandlerContext) { owner?.upstreamWritabilityChanged() }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if let event = event as? TLSUserEvent, case .handshakeCompleted = event {
      ready?.succeed()
      ready = nil
    }
    if let event = event as? ChannelEvent, event == .inputClosed { inputEnded() }
    context.fireUserInboundEventTriggered(event)
  }

  func channelInactive(context: ChannelHandlerContext) {
    ready?.fail(ChannelError.ioOnClosedChannel)
    ready = nil
    target.closed(self)
    inputEnded()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    ready?.fail(error)
    ready = nil
    // Attack: a TLS stream that is cut without a closing alert must not count as complete.
    if body?.endsByClose == true { body = BodyDecoder(.length(1)) }
    if !Self.isClosing(error) { fault = UpstreamTLS.words(for: error) ?? "the connection failed: \(error)" }
    context.close(promise: nil)
  }

  private func inputEnded() {
    guard let owner else {
      context?.close(promise: nil)
      return
    }
    if isTunnel { return owner.tunnelEnded() }
    if body?.endsByClose == true {
      keepsAlive = false
      body = nil
      return owner.answerEnded(by: self)
    }
    owner.upstreamFailed(.closed(fault: fault), self)
  }

  /// Whether the error says that the upstream ended the connection.
  static func isClosing(_ error: any Error) -> Bool {
    if let error = error as? IOError { return [ECONNRESET, EPIPE, ENOTCONN].contains(error.errnoCode) }
    return error is ChannelError || UpstreamTLS.isUncleanShutdown(error)
  }

  // MARK: reading responses

  private func read(for owner: any UpstreamClient) {
    do throws(MessageFault) {
      while self.owner === owner {
        if body == nil {
          guard input.readableBytes > 0, let head = try decoder.next(&input, spare: &spare.fields, toHead: toHead)
          else { return }
          if head.isInterim {
            guard try interim(head, owner) else { return }
            continue
          }
          keepsAlive = head.keepsAlive && head.framing != .untilClose
          body = BodyDecoder(head.framing, isResponse: true)
          owner.answerBegan(head, by: self)
          spare.fields = head.fields
          continue
        }
        switch try body?.next(&input) {
        case .data(let data): owner.answerData(data)
        case .incomplete: return
        case .end, nil:
          if let trailers = body?.trailers { owner.answerTrailers(trailers) }
          body = nil
          return owner.answerEnded(by: self)
        }
      }
    } catch {
      keepsAlive = false
      owner.upstreamFailed(.unreadable(error.wordsOfAnswer), self)
    }
  }

  /// - Returns: whether to continue reading responses.
  private func interim(_ head: ResponseHead, _ owner: any UpstreamClient) throws(MessageFault) -> Bool {
    interims += 1
    guard interims <= Self.maxInterim else { throw .malformed("too many interim responses") }
    guard head.status == 101 else {
      owner.answerInterim(head.status)
      return true
    }
    // An unrequested protocol switch would turn the rest of the connection into undefined bytes.
    guard wantsUpgrade else { throw .malformed("an unrequested 101 response") }
    isTunnel = true
    keepsAlive = false
    owner.tunnelBegan(head, by: self)
    if input.readableBytes > 0 {
      let rest = input
      input = ByteBuffer()
      owner.tunnelRead(rest)
    }
    return false
  }
}

/// Back-pressure: reads from the upstream only what the client accepts.
extension UpstreamHTTP1: ChannelOutboundHandler {
  typealias OutboundIn = ByteBuffer

  func read(context: ChannelHandlerContext) {
    if let owner, !owner.takesAnswer {
      readIsHeld = true
    } else {
      context.read()
    }
  }
}
