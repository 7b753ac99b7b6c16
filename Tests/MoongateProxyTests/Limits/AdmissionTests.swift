import MoongateCore
import MoongateTesting
import NIOCore
import NIOEmbedded
import NIOTLS
import Testing

@testable import MoongateProxy

/// Permits are acquired before the TLS handshake and released once.
@Suite struct AdmissionTests {
  private func gateway(_ limits: ConnectionLimits, trusted: Bool = false) async throws -> TestGateway {
    var settings = GatewaySettings.test()
    settings.connectionLimits = limits
    if trusted { settings.trustedProxies = [AddressBlock(network: [192, 0, 2, 0], prefix: 24)] }
    return try await TestGateway(routes: [], settings: settings)
  }

  /// A connection before its handshake.
  private func connect(_ gateway: TestGateway, _ address: String = "192.0.2.1") throws -> EmbeddedChannel {
    let channel = EmbeddedChannel()
    let handler = TLSHandshakeHandler(loop: gateway.proxy.loop(for: channel.eventLoop)) { _ in }
    try channel.pipeline.syncOperations.addHandler(handler)
    channel.connect(to: try SocketAddress(ipAddress: address, port: 1), promise: nil)
    return channel
  }

  private func onOneThread(_ body: () throws -> Void) rethrows { try body() }

  @Test(arguments: [ConnectionLimits(connections: 2), ConnectionLimits(connections: 100, connectionsPerAddress: 2)])
  func unfinishedHandshakeHoldsAPermit(_ limits: ConnectionLimits) async throws {
    let gateway = try await gateway(limits)
    try onOneThread {
      let first = try connect(gateway)
      let second = try connect(gateway)
      #expect(try !connect(gateway).isActive)
      #expect(first.isActive && second.isActive)
      first.embeddedEventLoop.advanceTime(by: .seconds(11))
      #expect(!first.isActive, "handshakes time out")
      let third = try connect(gateway)
      #expect(third.isActive)
      #expect(try !connect(gateway).isActive)
      for channel in [first, second, third] { _ = try channel.finish(acceptAlreadyClosed: true) }
    }
    await gateway.stop()
  }

  @Test(arguments: [nil, "h2"]) func finishedHandshakeHoldsOnePermit(_ agreed: String?) async throws {
    let gateway = try await gateway(ConnectionLimits(connections: 1))
    try onOneThread {
      for _ in 0..<3 {
        let channel = try connect(gateway)
        channel.pipeline.fireUserInboundEventTriggered(TLSUserEvent.handshakeCompleted(negotiatedProtocol: agreed))
        #expect(channel.isActive)
        #expect(try !connect(gateway).isActive)
        channel.close(promise: nil)
        channel.embeddedEventLoop.run()
        _ = try? channel.finish(acceptAlreadyClosed: true)
      }
    }
    await gateway.stop()
  }

  @Test func trustedProxiesHaveManyPlaces() async throws {
    let gateway = try await gateway(ConnectionLimits(connections: 100, connectionsPerAddress: 1), trusted: true)
    try onOneThread {
      let channels = try (0..<5).map { _ in try connect(gateway) }
      #expect(channels.allSatisfy { $0.isActive })
      for channel in channels { _ = try channel.finish(acceptAlreadyClosed: true) }
    }
    await gateway.stop()
  }
}
