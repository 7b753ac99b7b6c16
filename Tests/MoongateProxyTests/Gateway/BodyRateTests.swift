import MoongateCore
import NIOCore
import NIOEmbedded
import Testing

@testable import MoongateProxy

/// Slow request bodies (`body_rate`), to the second.
@Suite struct BodyRateTests {
  private func onOneThread(
    _ rate: BodyRate? = BodyRate(bytes: 100, window: .seconds(10)), _ body: (EmbeddedExchange) throws -> Void
  ) async throws {
    let gateway = try await TestGateway(routes: [.test(ports: [1], open: true, timeout: .seconds(20), bodyRate: rate)])
    try play(gateway, body)
    await gateway.stop()
  }

  private func play(_ gateway: TestGateway, _ body: (EmbeddedExchange) throws -> Void) throws {
    let exchange = try EmbeddedExchange(gateway)
    defer { exchange.end() }
    try body(exchange)
  }

  private let post = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n"

  @Test func aBodyThatDripsIsRefusedAtTheEndOfTheWindow() async throws {
    try await onOneThread { exchange in
      try exchange.send(post)
      for _ in 0..<9 {
        exchange.pass(.seconds(1))
        try exchange.send("0123456789")
      }
      exchange.pass(.milliseconds(900))
      #expect(try exchange.got() == "" && exchange.upstream.isActive)
      exchange.pass(.milliseconds(200))
      #expect(try exchange.got().hasPrefix("HTTP/1.1 408 ") && !exchange.upstream.isActive)
    }
  }

  @Test func eachWindowCountsByItself() async throws {
    try await onOneThread { exchange in
      try exchange.send(post + String(repeating: "x", count: 900))
      exchange.pass(.milliseconds(10_100))
      #expect(try exchange.got() == "")
      try exchange.send(String(repeating: "x", count: 99))
      exchange.pass(.milliseconds(10_100))
      #expect(try exchange.got().hasPrefix("HTTP/1.1 408 "))
    }
  }

  @Test func fastEnoughIsServed() async throws {
    try await onOneThread { exchange in
      try exchange.send(post)
      for _ in 0..<10 {
        exchange.pass(.seconds(9))
        try exchange.send(String(repeating: "x", count: 100))
      }
      try exchange.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      #expect(try exchange.got().hasSuffix("ok"))
    }
  }

  /// Attack: chunk extensions, which are not part of the body.
  @Test func framingDoesNotCount() async throws {
    try await onOneThread { exchange in
      try exchange.send("POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
      for _ in 0..<10 {
        exchange.pass(.seconds(1))
        try exchange.send("1;" + String(repeating: "a", count: 500) + "\r\nx\r\n")
      }
      exchange.pass(.milliseconds(200))
      #expect(try exchange.got().hasPrefix("HTTP/1.1 408 "))
    }
  }

  @Test func slowUpstreamIsNotChargedToTheClient() async throws {
    try await onOneThread { exchange in
      try exchange.send(post + String(repeating: "x", count: 200))
      exchange.pass(.seconds(5))
      exchange.upstream.isWritable = false
      exchange.upstream.pipeline.fireChannelWritabilityChanged()
      exchange.pass(.seconds(15))
      exchange.upstream.isWritable = true
      exchange.upstream.pipeline.fireChannelWritabilityChanged()
      exchange.pass(.milliseconds(9900))
      #expect(try exchange.got() == "" && exchange.upstream.isActive)
      exchange.pass(.milliseconds(200))
      #expect(try exchange.got().hasPrefix("HTTP/1.1 408 "))
    }
  }

  /// For a client that waits for a 100, the first window is the upstream's timeout; later ones are normal.
  @Test func clientWaitingFor100GetsTheUpstreamTimeout() async throws {
    let waiting = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
    try await onOneThread { exchange in
      try exchange.send(waiting)
      exchange.pass(.milliseconds(19_900))
      #expect(try exchange.got() == "" && exchange.upstream.isActive)
      exchange.pass(.milliseconds(200))
      #expect(try exchange.got().hasPrefix("HTTP/1.1 408 ") && !exchange.upstream.isActive)
    }
    try await onOneThread { exchange in
      try exchange.send(waiting)
      exchange.pass(.seconds(15))
      try exchange.answer("HTTP/1.1 100 Continue\r\n\r\n")
      #expect(try exchange.got() == "HTTP/1.1 100 Continue\r\n\r\n")
      exchange.pass(.milliseconds(9900))
      #expect(exchange.upstream.isActive)
      exchange.pass(.milliseconds(200))
      #expect(try exchange.got().hasPrefix("HTTP/1.1 408 "))
    }
  }

  /// A response that has begun cannot become a 408 and stays incomplete.
  @Test func aBodyThatDripsUnderAnAnswerEndsTheConnection() async throws {
    try await onOneThread { exchange in
      try exchange.send(post)
      try exchange.answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
      #expect(try exchange.got().hasSuffix("half"))
      for _ in 0..<11 {
        exchange.pass(.seconds(1))
        if exchange.client.isActive { try exchange.send("x") }
      }
      #expect(!exchange.client.isActive && !exchange.upstream.isActive)
    }
  }

  @Test func withoutARateOnlySilenceEndsABody() async throws {
    try await onOneThread(nil) { exchange in
      try exchange.send(post)
      for _ in 0..<8 {
        exchange.pass(.seconds(59))
        try exchange.send("x")
      }
      #expect(try exchange.got() == "" && exchange.upstream.isActive)
      exchange.pass(.milliseconds(60_200))
      #expect(try exchange.got().hasPrefix("HTTP/1.1 408 "))
    }
  }
}
