import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProxy

/// What a request counts for in the `rate` of its route, and when.
@Suite struct RateTests {
  private static let bearer = "Authorization: Bearer mgt_\(String(repeating: "s", count: 43))\r\n"

  private func refused(_ decision: AccessDecision) -> RequestRefusal? {
    decision.refusal?.code == .rateLimited ? decision.refusal : nil
  }

  /// Attack: sessions that do not exist, each of which would be looked up in the store.
  @Test(arguments: [RouteRate.Subject.ip, .global])
  func addressIsCountedBeforeTheLookupAndOnlyOnce(_ subject: RouteRate.Subject) throws {
    let access = try AccessFixture([Route.test(ports: []).limited(to: 2, per: subject)])
    let request = try access.proxied("/x", AccessFixture.cookie)
    for _ in 1...2 {
      #expect(access.decide(request).lookup != nil)
      for _ in 1...5 { #expect(access.decide(request, .live(access.session())).grant != nil) }
    }
    let refusal = try #require(refused(access.decide(request)))
    #expect(refusal.detail["rule"] == "rate" && refusal.detail["at"] == "routes.lua:1")
    #expect(refusal.detail["per"] == subject.rawValue && refusal.detail["max"] == "2")
    #expect(refusal.detail["window"] == "3600" && refusal.account == nil)
    #expect(try refused(access.decide(access.asked("/x", AccessFixture.cookie))) != nil, "forward-auth counts as well")
  }

  @Test func accountIsCountedAfterTheLookup() throws {
    let access = try AccessFixture([Route.test(ports: []).limited(to: 2, per: .account)])
    let request = try access.proxied("/x", AccessFixture.cookie)
    func ask(_ account: String) -> AccessDecision { access.decide(request, .live(access.session(account: account))) }
    for _ in 1...2 {
      for _ in 1...5 { #expect(access.decide(request).lookup != nil, "an account is not known yet") }
      #expect(ask("ac_alice").grant != nil)
    }
    let refusal = try #require(refused(ask("ac_alice")))
    #expect(refusal.account == "ac_alice" && refusal.retryAfter == refusal.excess?.wait)
    #expect(ask("ac_bob").grant != nil)
    #expect(access.decide(try access.proxied()).location != nil, "anonymous requests count for their address")
  }

  /// Attack: a client leaves its cookie out, or sends one that is not valid, to get around the limit of its account.
  @Test(arguments: [RouteRate.Subject.account, .token])
  func requestWithoutCredentialCountsForItsAddress(_ subject: RouteRate.Subject) throws {
    let access = try AccessFixture([Route.test(ports: [], open: true).limited(to: 3, per: subject)])
    #expect(access.decide(try access.proxied()).grant != nil)
    #expect(access.decide(try access.proxied("/x", AccessFixture.cookie), SessionCache.LookupResult.none).grant != nil)
    #expect(access.decide(try access.proxied("/x", AccessFixture.cookie), storeIsFresh: false).grant != nil)
    #expect(try refused(access.decide(access.proxied())) != nil)
    #expect(access.decide(try access.proxied("/x", AccessFixture.cookie), .live(access.session())).grant != nil)
  }

  @Test func tokenIsCountedByItself() throws {
    let access = try AccessFixture([Route.test(ports: [], tokens: .services).limited(to: 2, per: .token)])
    let request = try access.proxied("/x", Self.bearer)
    for _ in 1...2 { #expect(access.decide(request, .live(access.serviceToken())).grant != nil) }
    #expect(refused(access.decide(request, .live(access.serviceToken()))) != nil)
    let session = try access.proxied("/x", AccessFixture.cookie)
    for _ in 1...2 { #expect(access.decide(session, .live(access.session())).grant != nil, "an account's own") }
    #expect(refused(access.decide(session, .live(access.session()))) != nil)
  }

  /// Attack: a program tries tokens. Each is refused by itself, and all count for the address.
  @Test func wrongTokensCountForTheirAddress() throws {
    let access = try AccessFixture([Route.test(ports: [], tokens: .services).limited(to: 2, per: .token)])
    let request = try access.proxied("/x", Self.bearer)
    for _ in 1...2 {
      #expect(access.decide(request, SessionCache.LookupResult.none).refusal?.code == .unauthenticated)
    }
    #expect(refused(access.decide(request, SessionCache.LookupResult.none)) != nil)
  }

  /// The token for the service of a route with `bearer` is made between two decisions about one request.
  @Test func requestThatIsDecidedOnceMoreCountsOnce() throws {
    let access = try AccessFixture([Route.test(ports: []).limited(to: 1, per: .account)])
    let request = try access.proxied("/x", AccessFixture.cookie)
    #expect(access.decide(request, .live(access.session())).grant != nil)
    var again = request
    again.isRateCounted = true
    #expect(access.decide(again, .live(access.session())).grant != nil)
    #expect(refused(access.decide(request, .live(access.session()))) != nil)
  }

  @Test func routesCountSeparately() throws {
    let access = try AccessFixture([
      Route.test("/a/**", ports: [], open: true).limited(to: 1, per: .global),
      Route.test("/b/**", ports: [], open: true).limited(to: 1, per: .global), .test(ports: [], open: true),
    ])
    #expect(access.decide(try access.proxied("/a/x")).grant != nil)
    #expect(try refused(access.decide(access.proxied("/a/x"))) != nil)
    #expect(access.decide(try access.proxied("/b/x")).grant != nil)
    for _ in 1...20 { #expect(access.decide(try access.proxied("/c")).grant != nil) }
  }

  @Test func requestThatTheRouteRefusesCountsToo() throws {
    let access = try AccessFixture([Route.test(ports: [], groups: ["staff"]).limited(to: 1, per: .account)])
    let request = try access.proxied("/x", AccessFixture.cookie)
    #expect(access.decide(request, .live(access.session())).refusal?.code == .forbidden)
    #expect(refused(access.decide(request, .live(access.session()))) != nil)
  }
}
