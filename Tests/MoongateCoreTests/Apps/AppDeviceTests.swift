import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

/// Devices without a browser (RFC 8628).
@Suite struct AppDeviceTests {
  private typealias Bench = AppsTestBench

  private func app(_ id: String = "tv") throws -> App {
    try Bench.app(id, authentication: .none, grants: [.deviceCode, .refreshToken])
  }

  private func poll(_ codes: DeviceCodes, _ app: App, _ bench: Bench) async throws -> String? {
    try await Bench.error { _ = try await bench.apps.redeemDevice(codes.device.reveal(), by: app, bench.call) }
  }

  private func request(_ codes: DeviceCodes, _ bench: Bench) async throws -> DeviceRequest {
    try #require(try await bench.apps.deviceRequest(typed: codes.user.reveal(), bench.call))
  }

  @Test func deviceGetsTokensAfterTheUserHasAgreed() async throws {
    let app = try app()
    let bench = try await Bench(app)
    let codes = try await bench.apps.beginDevice(app, scopes: ["openid", "email", "unknown"], bench.call)
    #expect(codes.user.reveal().wholeMatch(of: /[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}/) != nil)
    #expect(try await poll(codes, app, bench) == "authorization_pending")
    let typed = codes.user.reveal().lowercased().replacing("-", with: " ")
    let request = try #require(try await bench.apps.deviceRequest(typed: typed, bench.call))
    #expect(request.scopes == ["openid", "email"] && request.address == "192.0.2.7")
    let session = try await bench.session()
    // The device asks only after a while. The code of the decision lives as long as the request.
    try await bench.apps.decideDevice(request, app, allowedBy: session, bench.call)
    bench.clock.advance(by: .seconds(300))
    let tokens = try await bench.apps.redeemDevice(codes.device.reveal(), by: app, bench.call)
    #expect(try await bench.isLive(tokens.access))
    let claims = try await bench.claims(tokens.idToken)
    #expect(claims["sub"] == .text(Bench.account) && claims["nonce"] == nil)
    // Attack: the device code is used a second time.
    #expect(try await poll(codes, app, bench) == "invalid_grant")
    #expect(try await bench.store.appConnections(of: Bench.account).first?.agreed == true)
    try await bench.apply(.endSession(session.session.token))
    #expect(try await !bench.isLive(tokens.access))
  }

  @Test func userDenies() async throws {
    let app = try app()
    let bench = try await Bench(app)
    let codes = try await bench.apps.beginDevice(app, scopes: ["openid"], bench.call)
    let request = try await request(codes, bench)
    try await bench.apps.decideDevice(request, app, allowedBy: nil, bench.call)
    // Attack: a request that was decided is decided again.
    let session = try await bench.session()
    #expect(try await bench.apps.deviceRequest(typed: codes.user.reveal(), bench.call) == nil)
    await #expect(throws: AppFault.self) {
      try await bench.apps.decideDevice(request, app, allowedBy: session, bench.call)
    }
    #expect(try await poll(codes, app, bench) == "access_denied")
    #expect(try await poll(codes, app, bench) == "invalid_grant")
  }

  @Test func deviceMustWaitBetweenPolls() async throws {
    let app = try app()
    let bench = try await Bench(app)
    let codes = try await bench.apps.beginDevice(app, scopes: ["openid"], bench.call)
    #expect(try await poll(codes, app, bench) == "authorization_pending")
    bench.clock.advance(by: .seconds(4))
    #expect(try await poll(codes, app, bench) == "slow_down")
    bench.clock.advance(by: .seconds(9))
    #expect(try await poll(codes, app, bench) == "slow_down", "ten seconds now")
    bench.clock.advance(by: .seconds(15))
    #expect(try await poll(codes, app, bench) == "authorization_pending")
    bench.clock.advance(by: .seconds(600))
    #expect(try await poll(codes, app, bench) == "expired_token")
    #expect(try await bench.apps.deviceRequest(typed: codes.user.reveal(), bench.call) == nil)
  }

  /// Attack: a victim has allowed a device, regrets it and disconnects the app, and only then the device asks; or the
  /// victim connects the app again before.
  @Test(arguments: [false, true]) func disconnectingEndsWhatWasAllowed(isConnectedAgain: Bool) async throws {
    let app = try app()
    let bench = try await Bench(app)
    let session = try await bench.session()
    let codes = try await bench.apps.beginDevice(app, scopes: ["openid", "offline_access"], bench.call)
    try await bench.apps.decideDevice(try await request(codes, bench), app, allowedBy: session, bench.call)
    bench.clock.advance(by: .seconds(60))
    try await bench.apply(.endAppConnection(account: Bench.account, app: app.id))
    if isConnectedAgain {
      let own = try await bench.apps.beginDevice(app, scopes: ["openid"], bench.call)
      try await bench.apps.decideDevice(try await request(own, bench), app, allowedBy: session, bench.call)
      #expect(try await poll(own, app, bench) == nil)
    }
    #expect(try await poll(codes, app, bench) == "invalid_grant")
  }

  /// Attack: the device code of another app, or the user signs out before the device asks.
  @Test func codeIsBoundToItsAppAndItsSession() async throws {
    let (app, other) = (try app(), try app("other"))
    let bench = try await Bench(app, other)
    let codes = try await bench.apps.beginDevice(app, scopes: ["openid"], bench.call)
    #expect(try await poll(codes, other, bench) == "invalid_grant")
    let session = try await bench.session()
    try await bench.apps.decideDevice(try await request(codes, bench), app, allowedBy: session, bench.call)
    #expect(try await poll(codes, other, bench) == "invalid_grant")
    try await bench.apply(.endSession(session.session.token))
    #expect(try await poll(codes, app, bench) == "invalid_grant")
  }

  /// Attack: a user who may not sign in to the app allows a device.
  @Test func ruleOfTheAppHolds() async throws {
    let app = try Bench.app(
      "tv", requirement: AppRequirement(groups: GroupRequirement(anyOf: [Bench.staff])), grants: [.deviceCode])
    let bench = try await Bench(app)
    let codes = try await bench.apps.beginDevice(app, scopes: ["openid"], bench.call)
    let (request, session) = (try await request(codes, bench), try await bench.session())
    #expect(
      try await Bench.error { try await bench.apps.decideDevice(request, app, allowedBy: session, bench.call) }
        == "access_denied")
    #expect(try await poll(codes, app, bench) == "authorization_pending")
  }

  /// Attack: someone types letters until they hit the request of somebody else.
  @Test func wrongLettersAreCounted() async throws {
    let app = try app()
    let bench = try await Bench(app)
    let codes = try await bench.apps.beginDevice(app, scopes: ["openid"], bench.call)
    for typed in Array(repeating: ["BBBB-BBBB", "", "AEIO-UAEI"], count: 20).joined() {
      #expect(try await bench.apps.deviceRequest(typed: typed, bench.call) == nil)
    }
    #expect(try await bench.apps.deviceRequest(typed: codes.user.reveal(), bench.call) == nil, "locked")
    // Neither the app nor routes are affected.
    #expect(try await bench.apps.limiter.lockedUntil(bench.address, client: app.id) == nil)
    #expect(try await bench.apps.limiter.lockedUntil(bench.address) == nil)
  }

  /// Attack: an app fills the store with requests.
  @Test func requestsAreBounded() async throws {
    let app = try app()
    let bench = try await Bench(app)
    for _ in 0..<1000 { _ = try await bench.apps.beginDevice(app, scopes: [], bench.call) }
    #expect(
      try await Bench.error { _ = try await bench.apps.beginDevice(app, scopes: [], bench.call) }
        == "temporarily_unavailable")
    bench.clock.advance(by: .seconds(600))
    _ = try await bench.apps.beginDevice(app, scopes: [], bench.call)
  }

  /// Attack: an attacker with IPv6 begins the most requests from each of their addresses.
  @Test func requestsOfANetworkAreCountedTogether() async throws {
    let app = try app()
    let bench = try await Bench(app)
    func begin(_ last: [UInt8]) async throws -> DeviceCodes {
      let network: [UInt8] = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, last[0], 0, 0, 0, 0, 0, 0]
      let address = try #require(ClientAddress(bytes: network + Array(last[1...])))
      let call = AppCall(
        generation: bench.generations.current, client: ClientFacts(address: address, isNewDevice: false),
        decision: DecisionID(from: SystemRandom()))
      return try await bench.apps.beginDevice(app, scopes: [], call)
    }
    for number in 0..<1000 { _ = try await begin([1, UInt8(number / 250), UInt8(number % 250)]) }
    #expect(try await Bench.error { _ = try await begin([1, 9, 9]) } == "temporarily_unavailable")
    let codes = try await begin([2, 9, 9])
    #expect(try await request(codes, bench).address == "2001:db8:0:2::/64")
  }

  @Test func lettersHaveNoLookAlikes() {
    #expect(DeviceLetters.alphabet.count == 20 && DeviceLetters.alphabet.allSatisfy { !"AEIOUY".contains($0) })
    #expect(DeviceLetters.read(" bcdf - ghjk ") == "BCDFGHJK" && DeviceLetters.shown("BCDFGHJK") == "BCDF-GHJK")
    for wrong in ["", "BCDFGHJ", "BCDFGHJKL", "BCDFGHJ0", String(repeating: "-", count: 65) + "BCDFGHJK"] {
      #expect(DeviceLetters.read(wrong) == nil)
    }
  }
}
