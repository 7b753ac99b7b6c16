import NIOCore
import NIOPosix
import Synchronization

/// A configurable mail server without TLS on its own port.
final class TestMailServer: Sendable {
  /// The replies by the first word of a line; 250 by default.
  let replies = Mutex<[String: String]>([:])
  private let heard = Mutex<[String]>([])
  private let connections = Mutex<Int>(0)

  var lines: [String] { heard.withLock { $0 } }
  var connected: Int { connections.withLock { $0 } }

  /// - Parameter body: receives the port.
  func run(_ body: (Int) async throws -> Void) async throws {
    let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Talk(server: self)) }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    do {
      try await body(listener.localAddress?.port ?? 0)
    } catch {
      try await listener.close()
      throw error
    }
    try await listener.close()
  }

  private final class Talk: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let server: TestMailServer
    private var rest = ""
    private var isMail = false

    init(server: TestMailServer) { self.server = server }

    func channelActive(context: ChannelHandlerContext) {
      server.connections.withLock { $0 += 1 }
      say(server.replies.withLock { $0["connect"] } ?? "220 test", context)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      rest += String(buffer: unwrapInboundIn(data))
      while let end = rest.firstRange(of: "\r\n") {
        let line = String(rest[..<end.lowerBound])
        rest = String(rest[end.upperBound...])
        server.heard.withLock { $0.append(line) }
        if isMail {
          guard line == "." else { continue }
          isMail = false
        }
        let word = String(line.prefix { $0 != " " && $0 != ":" }).uppercased()
        let reply = server.replies.withLock { $0[word] }
        if word == "DATA", reply == nil { isMail = true }
        let usual =
          word == "DATA"
          ? "354 go on" : word == "EHLO" ? "250-test\r\n250 AUTH PLAIN" : word == "AUTH" ? "235 welcome" : "250 ok"
        say(reply ?? usual, context)
      }
    }

    private func say(_ text: String, _ context: ChannelHandlerContext) {
      guard text != "silence" else { return }
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text + "\r\n")), promise: nil)
      if text.hasPrefix("421") || text == "220 bye" { context.close(promise: nil) }
    }
  }
}
