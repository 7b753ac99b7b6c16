import MoongateCore
import MoongateSDK
import NIOCore
import NIOPosix
import NIOSSL

/// Sends a request that an HTTP client cannot make, over a connection of its own.
enum RawExchange {
  private static let timeLimit: TimeAmount = .seconds(5)

  /// - Parameters:
  ///   - request: the bytes of the request.
  ///   - url: where to connect. A certificate must be valid.
  /// - Returns: the head of the answer; nil if none arrives within five seconds.
  static func head(of request: String, from url: PublicURL) async -> String? {
    let host = IPAddressBytes.withoutBrackets(url.host)
    let name = IPAddressText.parse(host.utf8) == nil ? host : nil
    guard let context = try? NIOSSLContext(configuration: .makeClientConfiguration()) else { return nil }
    let head = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: String.self)
    let bootstrap = ClientBootstrap(group: head.futureResult.eventLoop).connectTimeout(timeLimit)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if url.isSecure {
            try channel.pipeline.syncOperations.addHandler(NIOSSLClientHandler(context: context, serverHostname: name))
          }
          try channel.pipeline.syncOperations.addHandler(HeadReader(request: request, head: head))
        }
      }
    do {
      let channel = try await bootstrap.connect(host: host, port: url.port).get()
      let limit = channel.eventLoop.scheduleTask(in: timeLimit) { channel.close(promise: nil) }
      channel.closeFuture.whenComplete { _ in head.fail(ChannelError.eof) }
      let found = try? await head.futureResult.get()
      limit.cancel()
      try? await channel.close().get()
      return found
    } catch {
      head.fail(error)
      return nil
    }
  }
}

/// Sends the request, and reads until the end of the answer's head.
private final class HeadReader: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private static let largest = 64 * 1024
  private static let end = Array("\r\n\r\n".utf8)

  private let request: String
  private let head: EventLoopPromise<String>
  private var received = ByteBuffer()

  init(request: String, head: EventLoopPromise<String>) {
    self.request = request
    self.head = head
  }

  func channelActive(context: ChannelHandlerContext) {
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: request)), promise: nil)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var part = unwrapInboundIn(data)
    received.writeBuffer(&part)
    let bytes = received.readableBytesView
    if let end = bytes.firstRange(of: Self.end) {
      head.succeed(String(decoding: bytes[..<end.lowerBound], as: UTF8.self))
    } else if bytes.count > Self.largest {
      head.fail(ByteToMessageDecoderError.PayloadTooLargeError())
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    head.fail(error)
    context.close(promise: nil)
  }
}
