import Foundation
import MoongateCore
import MoongateDelivery
import MoongateSDK
import MoongateTesting
import NIOCore
import NIOPosix
import Testing

@testable import MoongateGateway

/// What `moongate doctor` finds out about the services of routes, and about routes that are open to networks.
@Suite struct UpstreamDoctorTests {
  private static func route(
    _ ports: [Int], line: Int = 2, _ change: (inout Route) -> Void = { _ in }
  ) -> Route {
    var route = route(ports.map { Upstream(isSecure: false, host: "127.0.0.1", port: $0) }, line: line)
    change(&route)
    return route
  }

  private static func route(_ upstreams: [Upstream], line: Int = 2) -> Route {
    Route(
      host: nil, path: PathPattern(text: "/**", segments: [.anySegments]), methods: nil,
      upstreams: upstreams, isOpen: false, flow: "login",
      requirement: nil, decide: nil, timeout: .seconds(30), allowsUpgrade: false, headers: [], bodyLimit: nil,
      location: SourceLocation(file: "routes.lua", line: line))
  }

  @Test func eachUpstreamIsAskedOnceForEachPath() {
    let routes = [
      Self.route([3001, 3000]), Self.route([3000]),
      Self.route([3000]) { $0.health = HealthCheck(path: "/healthz?full", interval: .seconds(10)) },
      Self.route([3001]) { $0.rewrite.base = "/base" },
    ]
    let all = UpstreamQuestion.all(of: RouteTable(routes: routes))
    #expect(
      all.map(\.url) == [
        "http://127.0.0.1:3000/", "http://127.0.0.1:3000/healthz?full", "http://127.0.0.1:3001/",
        "http://127.0.0.1:3001/base/",
      ])
    #expect(all.map(\.isHealth) == [false, true, false, false])
    #expect(all[1].head.hasPrefix("GET /healthz?full HTTP/1.1\r\nHost: 127.0.0.1:3000\r\n"))
    #expect(all[1].head.hasSuffix("close\r\n\r\n"))
  }

  @Test(arguments: [(200, Finding.State.ok), (399, .ok), (404, .failed), (503, .failed), (199, .failed)])
  func statusOfAHealthCheckCounts(_ status: Int, _ state: Finding.State) {
    let upstream = Upstream(isSecure: false, host: "10.0.0.5", port: 3000)
    let health = UpstreamQuestion(upstream: upstream, path: "/healthz", isHealth: true)
    #expect(Judgement.upstream(health, .status(status, date: nil)).state == state)
    // Without `health`, every answer shows that the service is there.
    let other = UpstreamQuestion(upstream: upstream, path: "/", isHealth: false)
    #expect(
      Judgement.upstream(other, .status(status, date: nil))
        == .ok("upstream", "http://10.0.0.5:3000/ answers (\(status))."))
    #expect(Judgement.upstream(other, .speaksHTTP2).state == .ok)
    let failed = Judgement.upstream(other, .failed("Connection refused"))
    #expect(failed.state == .failed && failed.message == "http://10.0.0.5:3000/ does not answer: Connection refused.")
  }

  @Test func firstFrameTellsHTTP2() {
    #expect(UpstreamQuestion.isHTTP2([0, 0, 18, 4, 0, 0, 0, 0, 0, 0, 3]))
    #expect(UpstreamQuestion.isHTTP2([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    #expect(!UpstreamQuestion.isHTTP2([0, 0, 0, 4, 1, 0, 0, 0, 0]), "an acknowledgement is not the first frame")
    #expect(!UpstreamQuestion.isHTTP2([0, 0, 0, 4, 0, 0, 0, 0, 1]), "SETTINGS is of the connection")
    #expect(!UpstreamQuestion.isHTTP2(Array("HTTP/1.1 400 Bad Request".utf8)))
    #expect(!UpstreamQuestion.isHTTP2([0, 0, 0, 4]))
  }

  /// Answers each connection with these bytes.
  private final class Answering: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer
    private let bytes: [UInt8]
    init(_ bytes: [UInt8]) { self.bytes = bytes }
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      if bytes.isEmpty { return context.close(promise: nil) }
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
    }
  }

  private func finding(_ answer: [UInt8], http2: Bool) async throws -> Finding {
    let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Answering(answer)) }
      }.bind(host: "127.0.0.1", port: 0).get()
    let port = try #require(server.localAddress?.port)
    var upstream = Upstream(isSecure: false, host: "127.0.0.1", port: port)
    upstream.usesHTTP2 = http2
    // A service that is asked by HTTP/1.1 is asked by this way if it has settings of TLS.
    if !http2 { upstream.trust = UpstreamTrust() }
    let generation = TestGeneration(gateway: .test(), routes: [Self.route([upstream])], flows: [], policies: [])
    let examination = Examination(generation, of: "config", registry: .none, recipient: nil)
    let (findings, _) = await examination.upstreams()
    await examination.web.end()
    try await server.close()
    return try #require(findings.first)
  }

  @Test func upstreamThatSpeaksHTTP2IsRecognised() async throws {
    let spoken = try await finding([0, 0, 0, 4, 0, 0, 0, 0, 0], http2: true)
    #expect(spoken.state == .ok && spoken.message.hasSuffix("speaks HTTP/2."), "\(spoken)")
    let other = try await finding(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8), http2: true)
    #expect(other.state == .failed && other.message.hasSuffix("it does not speak HTTP/2."), "\(other)")
    let silent = try await finding([], http2: true)
    #expect(silent.state == .failed && silent.message.contains("closed the connection"), "\(silent)")
  }

  @Test func upstreamIsAskedByItsOwnSettings() async throws {
    let answered = try await finding(Array("HTTP/1.1 302 Found\r\nDate: x\r\n\r\n".utf8), http2: false)
    #expect(answered.state == .ok && answered.message.hasSuffix("answers (302)."), "\(answered)")
    let garbage = try await finding(Array("hello\r\n\r\n".utf8), http2: false)
    #expect(garbage.state == .failed && garbage.message.hasSuffix("its answer is not HTTP/1.1."), "\(garbage)")
  }

  /// Attack: all clients count as the proxy, whose address is in the internal network.
  @Test func networksNeedReliableAddresses() {
    let open = Self.route([3000], line: 4) { $0.openNetworks = ["10.0.0.0/8"].compactMap(AddressBlock.init) }
    let failed = Finding.failed("proxies", "All users count as one client.", fix: "Correct it.")
    let found = Judgement.networks(RouteTable(routes: [Self.route([3000]), open]), proxies: failed)
    #expect(found?.state == .failed && found?.message.contains("routes.lua:4") == true)
    let good = Judgement.networks(RouteTable(routes: [open]), proxies: .ok("proxies", "Good."))
    #expect(
      good == .ok("networks", "Clients of 10.0.0.0/8 need no session at routes.lua:4, as `allow.networks` says."))
    // The addresses of trusted proxies never count, so a warning about them opens nothing.
    let warned = Judgement.networks(RouteTable(routes: [open]), proxies: .warning("proxies", "Odd.", fix: "See."))
    #expect(warned?.state == .ok)
    #expect(Judgement.networks(RouteTable(routes: [Self.route([3000])]), proxies: failed) == nil)
  }

  /// The doctor's own address may be in the network, so a page of such a route tells nothing about the proxy.
  @Test func hostProbeAvoidsRoutesThatAreOpenToNetworks() {
    let url = PublicURL(isSecure: true, host: "auth.example", port: 443)
    let office = Self.route([3000]) { $0.openNetworks = ["10.0.0.0/8"].compactMap(AddressBlock.init) }
    #expect(HostProbe(RouteTable(routes: [office]), publicURL: url) == nil)
    #expect(HostProbe(RouteTable(routes: [Self.route([3000])]), publicURL: url) != nil)
  }

  @Test func certificateForAServiceIsJudged() {
    let now = Date(timeIntervalSince1970: 1_800_000_000)
    let presenter = CertificatePresenter.upstream(url: "https://10.0.0.5:8443")
    let expired = Judgement.certificate(
      presenter, DateInterval(start: now - 91 * 86_400, end: now - 86_400), now: now)
    #expect(
      expired
        == .failed(
          "certificate",
          "The certificate that `upstream_tls` shows to https://10.0.0.5:8443 expired on 2027-01-14.",
          fix: "Renew it, then run `moongate reload`."))
    let soon = Judgement.certificate(
      presenter, DateInterval(start: now - 80 * 86_400, end: now + 5 * 86_400), now: now)
    #expect(soon.state == .warning)
  }
}
