import MoongateCore
import MoongateSDK
import NIOCore
import NIOPosix
import NIOSSL

/// Sends a request that an HTTP client cannot make, over a connection of its own.
enum RawExchange {
  /// Where to connect.
  struct Peer {
    let host: String
    let port: Int
    /// Nil for a connection without TLS.
    var tls: TLSConfiguration?
    /// The name that the certificate must have; nil: the address.
    var name: String?
  }

  private static let timeLimit: TimeAmount = .seconds(5)
  private static let headEnd = Array("\r\n\r\n".utf8)

  /// - Parameters:
  ///   - request: the bytes of the request.
  ///   - url: where to connect. A certificate must be valid.
  /// - Returns: the head of the answer; nil if none arrives within five seconds.
  static func head(of request: String, from url: PublicURL) async -> String? {
    let host = IPAddressBytes.withoutBrackets(url.host)
    let name = IPAddressText.parse(host.utf8) == nil ? host : nil
    let peer = Peer(host: host, port: url.port, tls: url.isSecure ? .makeClientConfiguration() : nil, name: name)
    return try? await head(of: request, from: peer)
  }

  /// - Returns: the head of the answer, without the empty line.
  /// - Throws: why none arrives within five seconds.
  static func head(of request: String, from peer: Peer) async throws -> String {
    let answer = try await answer(to: Array(request.utf8), from: peer) { $0.firstRange(of: headEnd) != nil }
    let end = answer.firstRange(of: headEnd)?.lowerBound ?? answer.endIndex
    return String(decoding: answer[..<end], as: UTF8.self)
  }

  /// - Parameter isWhole: whether these first bytes of the answer are enough.
  /// - Throws: why they do not arrive within five seconds.
  static func answer(
    to request: [UInt8], from peer: Peer, isWhole: @escaping @Sendable ([UInt8]) -> Bool
  ) async throws -> [UInt8] {
    let context = try peer.tls.map { try NIOSSLContext(configuration: $0) }
    let answer = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: [UInt8].self)
    let bootstrap = ClientBootstrap(group: answer.futureResult.eventLoop).connectTimeout(timeLimit)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if let context {
            try channel.pipeline.syncOperations.addHandler(
              NIOSSLClientHandler(context: context, serverHostname: peer.name))
          }
          try channel.pipeline.syncOperations.addHandler(
            AnswerReader(request: request, answer: answer, isWhole: isWhole))
        }
      }
    let channel: any Channel
    do {
      channel = try await bootstrap.connect(host: peer.host, port: peer.port).get()
    } catch {
      answer.fail(error)
      throw error
    }
    let limit = channel.eventLoop.scheduleTask(in: timeLimit) {
      answer.fail(ChannelError.connectTimeout(timeLimit))
    }
    channel.closeFuture.whenComplete { _ in answer.fail(ChannelError.eof) }
    defer {
      limit.cancel()
      channel.close(promise: nil)
    }
    return try await answer.futureResult.get()
  }
}

/// Sends the request, and reads the beginning of the answer.
private final class AnswerReader: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private static let largest = 64 * 1024

  private let request: [UInt8]
  private let answer: EventLoopPromise<[UInt8]>
  private let isWhole: @Sendable ([UInt8]) -> Bool
  private var received: [UInt8] = []

  init(request: [UInt8], answer: EventLoopPromise<[UInt8]>, isWhole: @escaping @Sendable ([UInt8]) -> Bool) {
    self.request = request
    self.answer = answer
    self.isWhole = isWhole
  }

  func channelActive(context: ChannelHandlerContext) {
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: request)), promise: nil)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    received += unwrapInboundIn(data).readableBytesView
    if isWhole(received) {
      answer.succeed(received)
    } else if received.count > Self.largest {
      answer.fail(ByteToMessageDecoderError.PayloadTooLargeError())
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    answer.fail(error)
    context.close(promise: nil)
  }
}
