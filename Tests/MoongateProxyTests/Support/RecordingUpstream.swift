import Foundation
import NIOCore
import NIOPosix
import Synchronization

/// An upstream that records all bytes and answers by a script.
final class RecordingUpstream: Sendable {
  /// The reaction to the bytes of a connection since the last answer; nil to wait for more.
  typealias Script = @Sendable (_ received: String) -> Step?

  enum Step: Sendable {
    case answer(String)
    /// Answers each part after a delay.
    case later([(after: TimeAmount, text: String)])
    /// Answers and closes the connection.
    case answerAndClose(String)
    case close
    /// Never answers.
    case silence
  }

  private let channel: any Channel
  private let log = Log()
  let port: Int

  /// All bytes per connection, in the order of the connections.
  var received: [String] { log.connections.withLock { $0.map { String(decoding: $0, as: UTF8.self) } } }
  var all: String { received.joined() }
  /// The number of open connections.
  var open: Int { log.open.withLock { $0 } }

  /// Answers each complete request (with Content-Length or chunked) with 200 and `hello`.
  static let hello: Script = { received in
    isComplete(received) ? .answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello") : nil
  }

  static func isComplete(_ received: String) -> Bool {
    guard let end = received.range(of: "\r\n\r\n") else { return false }
    let head = received[..<end.lowerBound].lowercased()
    let body = received[end.upperBound...]
    if head.contains("transfer-encoding: chunked") { return body.hasSuffix("0\r\n\r\n") }
    if let length = head.range(of: "content-length: ") {
      return body.utf8.count >= Int(head[length.upperBound...].prefix { $0.isNumber }) ?? 0
    }
    return true
  }

  /// - Parameter port: the port to listen on; 0 lets the system choose.
  init(port: Int = 0, _ script: @escaping Script = RecordingUpstream.hello) async throws {
    let log = log
    channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.allowRemoteHalfClosure, value: false)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(ScriptHandler(script, log))
        }
      }
      .bind(host: "127.0.0.1", port: port).get()
    self.port = channel.localAddress?.port ?? 0
  }

  func stop() async { try? await channel.close() }

  final class Log: Sendable {
    let connections = Mutex<[[UInt8]]>([])
    let open = Mutex(0)
  }

  private final class ScriptHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let script: Script
    private let log: Log
    private var place = 0
    private var pending: [UInt8] = []

    init(_ script: @escaping Script, _ log: Log) {
      self.script = script
      self.log = log
    }

    func channelActive(context: ChannelHandlerContext) {
      place = log.connections.withLock { connections in
        connections.append([])
        return connections.count - 1
      }
      log.open.withLock { $0 += 1 }
    }

    func channelInactive(context: ChannelHandlerContext) { log.open.withLock { $0 -= 1 } }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let bytes = Array(unwrapInboundIn(data).readableBytesView)
      let place = place
      log.connections.withLock { $0[place] += bytes }
      pending += bytes
      switch script(String(decoding: pending, as: UTF8.self)) {
      case nil: return
      case .answer(let text): context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
      case .later(let parts): answer(parts[...], context)
      case .answerAndClose(let text):
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
        context.close(promise: nil)
      case .close: context.close(promise: nil)
      case .silence: break
      }
      pending = []
    }

    private func answer(_ parts: ArraySlice<(after: TimeAmount, text: String)>, _ context: ChannelHandlerContext) {
      guard let part = parts.first else { return }
      context.eventLoop.assumeIsolated().scheduleTask(in: part.after) {
        context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(string: part.text)), promise: nil)
        self.answer(parts.dropFirst(), context)
      }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }
}
