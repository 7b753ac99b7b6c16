import Foundation
import MoongateCore
import MoongateTesting
import NIOCore
import NIOEmbedded
import Testing

@testable import MoongateProxy

/// Answers of services that are malformed, end too early, or are silent.
@Suite struct BrokenAnswerTests {
  private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
  private static let events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

  private func exchange(
    timeout: Duration = .seconds(30), _ body: (TestGateway, EmbeddedExchange) throws -> Void
  ) async throws {
    let gateway = try await TestGateway(routes: [.test(ports: [1], open: true, timeout: timeout)])
    try onOneThread(gateway, body)
    await gateway.stop()
  }

  private func onOneThread(_ gateway: TestGateway, _ body: (TestGateway, EmbeddedExchange) throws -> Void) throws {
    let exchange = try EmbeddedExchange(gateway)
    defer { exchange.end() }
    try exchange.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(try exchange.asked().hasPrefix("GET /x "))
    try body(gateway, exchange)
  }

  /// The line that tells the operator why the upstream failed.
  private func told(_ gateway: TestGateway) -> String {
    gateway.log.lines.filter { $0.contains("an upstream failed") }.joined()
  }

  /// Real servers send white space behind a chunk's size. The client gets chunks of the gateway's own form.
  @Test func spacesBehindAChunksSizeAreAccepted() async throws {
    try await exchange { gateway, exchange in
      try exchange.answer(Self.chunked + "2   \r\nok\r\n0 \r\n\r\n")
      #expect(try exchange.got().hasSuffix("\r\n\r\n2\r\nok\r\n0\r\n\r\n"))
      #expect(told(gateway).isEmpty)
    }
  }

  @Test(arguments: ["two\r\nok\r\n", "2\r\nok\r\n9z\r\n", "2\r\nokay\r\n"])
  func aBrokenAnswerOfWhichNothingHasLeftIs502(_ chunks: String) async throws {
    try await exchange { gateway, exchange in
      try exchange.answer(Self.chunked + chunks)
      let got = try exchange.got()
      #expect(got.hasPrefix("HTTP/1.1 502 ") && got.contains("\"code\":\"upstream_unavailable\""), "\(got)")
      #expect(got.components(separatedBy: "HTTP/1.1").count == 2 && !exchange.upstream.isActive)
      #expect(told(gateway).contains(chunks.contains("okay") ? "longer than its size" : "a chunk's size"))
      #expect(!told(gateway).contains("closed the connection"))
      // The connection is used for the next request.
      try exchange.send("GET /auth/x HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(exchange.client.isActive)
    }
  }

  @Test func theDecisionNamesTheFault() async throws {
    let upstream = try await RecordingUpstream {
      RecordingUpstream.isComplete($0) ? .answer(Self.chunked + "two\r\nok\r\n") : nil
    }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    let answer = try await gateway.talk("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
    let id = try #require(answer.range(of: "\"decision_id\":\"(dc_[^\"]+)\"", options: .regularExpression))
    let event = try await gateway.audit.event(DecisionID(text: String(answer[id].dropFirst(15).dropLast())))
    #expect(event?.detail["reason"] == "a chunk's size is not a hexadecimal number")
    await gateway.stop()
  }

  /// Attack, or accident: a cut response that looks complete.
  @Test func whatWasGoodGoesOutAndTheEndIsMissing() async throws {
    try await exchange { gateway, exchange in
      try exchange.answer(Self.chunked + "2\r\nok\r\n")
      #expect(try exchange.got().hasSuffix("\r\n\r\n2\r\nok\r\n"))
      try exchange.answer("4\r\nmore\r\n9z\r\n")
      #expect(try exchange.got() == "4\r\nmore\r\n" && !exchange.upstream.isActive)
      exchange.pass(.seconds(3))
      #expect(!exchange.client.isActive)
      #expect(told(gateway).contains("a chunk's size is not a hexadecimal number"))
      #expect(!told(gateway).contains("closed the connection"))
    }
  }

  @Test func aServiceThatClosesIsSaidToHaveClosed() async throws {
    try await exchange { gateway, exchange in
      try exchange.answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal")
      exchange.upstream.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
      #expect(try exchange.got().hasSuffix("\r\n\r\nhal"))
      exchange.pass(.seconds(3))
      #expect(!exchange.client.isActive && told(gateway).contains("it closed the connection within the response"))
    }
  }

  @Test func aConnectionThatFailsHereIsNotSaidToHaveBeenClosed() async throws {
    struct Broken: Error {}
    try await exchange { gateway, exchange in
      try exchange.answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal")
      exchange.upstream.pipeline.fireErrorCaught(Broken())
      exchange.pass(.seconds(3))
      #expect(told(gateway).contains("Broken") && !told(gateway).contains("closed the connection"))
    }
  }

  @Test func silenceIsCalledSilence() async throws {
    try await exchange(timeout: .seconds(5)) { gateway, exchange in
      try exchange.answer("HTTP/1.1 200 OK\r\nContent-Type: text/event-streams\r\n\r\nhal")
      exchange.pass(.milliseconds(4900))
      #expect(exchange.upstream.isActive)
      exchange.pass(.milliseconds(200))
      #expect(!exchange.upstream.isActive)
      exchange.pass(.seconds(3))
      #expect(!exchange.client.isActive)
      #expect(told(gateway).contains("silent") && !told(gateway).contains("closed the connection"))
    }
  }

  // MARK: event streams

  @Test(arguments: ["text/event-stream", "Text/Event-Stream; charset=utf-8", "text/event-stream ;a=b"])
  func anEventStreamMayBeSilent(_ type: String) async throws {
    try await exchange(timeout: .seconds(5)) { gateway, exchange in
      try exchange.answer(Self.events.replacing("text/event-stream", with: type) + "9\r\ndata: 1\n\n\r\n")
      #expect(try exchange.got().hasSuffix("9\r\ndata: 1\n\n\r\n"))
      exchange.pass(.hours(2))
      try exchange.answer("9\r\ndata: 2\n\n\r\n")
      #expect(try exchange.got() == "9\r\ndata: 2\n\n\r\n" && told(gateway).isEmpty)
    }
  }

  /// The timeout still holds for the head of the response.
  @Test func aServiceMustBeginItsEventStreamInTime() async throws {
    try await exchange(timeout: .seconds(5)) { _, exchange in
      exchange.pass(.milliseconds(5100))
      let got = try exchange.got()
      #expect(got.hasPrefix("HTTP/1.1 504 "))
    }
  }

  /// Attack: clients that close their side, or read nothing, hold streams of a service forever.
  @Test(arguments: [true, false]) func anEventStreamEndsWithItsClient(_ closes: Bool) async throws {
    try await exchange(timeout: .seconds(5)) { gateway, exchange in
      try exchange.answer(Self.events + "9\r\ndata: 1\n\n\r\n")
      exchange.pass(.minutes(10))
      if closes {
        exchange.endSending()
        exchange.pass(.milliseconds(4900))
        #expect(exchange.upstream.isActive)
        exchange.pass(.milliseconds(200))
      } else {
        exchange.takes(false)
        exchange.pass(.minutes(1))
        exchange.pass(.milliseconds(200))
      }
      #expect(!exchange.upstream.isActive)
    }
  }
}
