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

/// One connection to an upstream. It reads responses and passes them to the client connection that uses it.
///
/// It is either used by one exchange or idle in its target. Bytes that arrive while it is idle close it, because they
/// would be taken for the response to the next request.
final class UpstreamConnection: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private static let maxInterim = 16

  let target: UpstreamTarget
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
  var idleSince = NIODeadline.uptimeNanoseconds(0)

  init(target: UpstreamTarget, spare: SpareFields, ready: EventLoopPromise<Void>?) {
    self.target = target
    self.spare = spare
    self.ready = ready
  }

  var isOpen: Bool { channel?.isActive ?? false }
  var isWritable: Bool { channel?.isWritable ?? false }

  // MARK: for the client's connection

  /// Starts an exchange.
  func begin(for owner: any UpstreamClient, toHead: Bool, wantsUpgrade: Bool) {
    self.owner = owner
    target.requestBegan()
    self.toHead = toHead
    self.wantsUpgrade = wantsUpgrade
    interims = 0
    body = nil
  }

  func write(_ bytes: ByteBuffer) { context?.write(wrapOutboundOut(bytes), promise: nil) }

  func flush() { context?.flush() }

  /// Ends the exchange. The connection becomes idle, or is closed if it cannot be reused.
  func end(reusable: Bool) {
    release()
    resumeReading()
    guard reusable, keepsAlive, isOpen, input.readableBytes == 0, !isTunnel else { return close() }
    target.putIdle(self)
  }

  func close() {
    release()
    context?.close(promise: nil)
  }

  private func release() {
    if owner != nil { target.requestEnded() }
    owner = nil
  }

  /// The time since the upstream last acknowledged sent bytes; nil if it is unknown.
  var sinceBytesMoved: TimeAmount? { channel.flatMap { SocketProgress.sinceBytesMoved($0) } }

  /// Enables keepalive, because the connection may be silent for a long time.
  func watchPeer() { if let channel { Keepalive.enable(channel) } }

  /// The client has closed its side of a tunnel.
  func closeOutput() { context?.close(mode: .output, promise: nil) }

  /// Resumes a held read once the client side accepts bytes again.
  func resumeReading() {
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
  private static func isClosing(_ error: any Error) -> Bool {
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
          body = nil
          return owner.answerEnded(by: self)
        }
      }
    } catch {
      keepsAlive = false
      let reason: String =
        switch error {
        case .malformed(let text): text
        default: "the head is too large"
        }
      owner.upstreamFailed(.unreadable(reason), self)
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
extension UpstreamConnection: ChannelOutboundHandler {
  typealias OutboundIn = ByteBuffer

  func read(context: ChannelHandlerContext) {
    if let owner, !owner.takesAnswer {
      readIsHeld = true
    } else {
      context.read()
    }
  }
}
