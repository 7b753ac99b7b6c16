import MoongateCore
import NIOCore
import NIOHTTPTypes
import NIOPosix
import Testing

@testable import MoongateProxy

/// Client connections that end while a callback still refers to them.
@Suite struct ClientConnectionLifetimeTests {
  /// A wire that drops everything.
  private final class Wire: ClientWire {
    let eventLoop: any EventLoop
    let isWritable = true
    let hasBytesOnTheWay = false

    init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    func send(_ bytes: ByteBuffer, promise: EventLoopPromise<Void>?) { promise?.succeed() }
    func flush() {}
    func trail(_ lines: ByteBuffer) {}
    func read() {}
    func end() {}
    func cut() {}
    func endOutput() {}
    func watchPeer() {}
    func deliver(_ parts: [HTTPRequestPart]) {}
  }

  private final class Ended {
    weak var client: ClientConnection?

    init(_ client: ClientConnection) { self.client = client }
  }

  /// Sends a request whose session is not cached, and ends the connection at once.
  private func connectionThatEnds(_ gateway: TestGateway, on eventLoop: any EventLoop) async throws
    -> NIOLoopBound<Ended>
  {
    let proxy = gateway.proxy
    return try await eventLoop.submit {
      let client = ClientConnection(
        loop: proxy.loop(for: eventLoop), isSecure: true, streamOf: PeerKnowledge()
      ) {}
      client.begin(on: Wire(eventLoop), peer: .unspecified, use: nil)
      client.received(ByteBuffer(string: "GET /x HTTP/1.1\r\nHost: h\r\nCookie: moongate=\(TestGateway.token)\r\n\r\n"))
      client.ended()
      client.wire = nil
      return NIOLoopBound(Ended(client), eventLoop: eventLoop)
    }.get()
  }

  @Test func connectionThatEndedDuringALookupIsReleasedAfterTheAnswer() async throws {
    let gateway = try await TestGateway(routes: [.test(ports: [1])])
    gateway.sessions.holdAnswers()
    let eventLoop = MultiThreadedEventLoopGroup.singleton.any()
    let ended = try await connectionThatEnds(gateway, on: eventLoop)
    while gateway.sessions.reads == 0 { try await Task.sleep(for: .milliseconds(2)) }
    gateway.sessions.releaseAnswers()
    while try await eventLoop.submit({ ended.value.client != nil }).get() {
      try await Task.sleep(for: .milliseconds(2))
    }
    await gateway.stop()
  }
}
