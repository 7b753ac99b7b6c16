import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import NIOCore
import Testing

@testable import MoongateProxy

/// Access decisions, without sockets.
@Suite struct AuthorizerTests {
  private static let bearer = "Authorization: Bearer \(TestGateway.token)\r\n"
  private static let serviceToken = "mgt_" + String(repeating: "s", count: 43)
  private static let serviceBearer = "Authorization: Bearer \(serviceToken)\r\n"
  private let staff: GroupName

  init() throws { staff = try GroupName(test: "staff") }

  /// `staff` is a computed group whose function fails.
  private func failingGroups(_ generation: inout TestGeneration) {
    generation.accounts.groups = [staff: .computed(AccessFixture.membership)]
    // A closure in place of this function crashes the compiler (Swift 6.3.1).
    @Sendable func failing(facts: Facts) throws(PolicyFault) -> Bool {
      throw PolicyFault(kind: .error, location: nil, message: "no")
    }
    generation.conditions[AccessFixture.membership] = failing
  }

  // MARK: routes and sessions

  @Test func openRouteAdmitsAnonymousRequest() throws {
    let access = try AccessFixture([.test("/open/**", ports: [], open: true)])
    let decision = access.decide(try access.proxied("/open/x"))
    let grant = try #require(decision.grant)
    #expect(grant.session == nil && grant.entitlements == .none && !grant.dropsAuthorization)
    #expect(!decision.requirementsRan && decision.route === access.authorizer.plan.routes[0])
    if case .anonymous = decision.shadow {} else { Issue.record("a shadow policy may see an anonymous request") }
  }

  @Test func requestWithoutRouteHasNoRoute() throws {
    let access = try AccessFixture([.test("/only/**", host: "app.example.com", methods: ["GET"], ports: [])])
    for request in [
      try access.proxied("/other"), try access.proxied("/only/x", method: "POST"),
      try access.proxied("/only/x", host: "other.example.com"), try access.asked("/other"),
    ] {
      let decision = access.decide(request, .live(access.session()))
      #expect(decision.isNoRoute && decision.route == nil)
    }
    #expect(access.decide(try access.proxied("/%6fnly/x", AccessFixture.cookie)).lookup != nil)
  }

  @Test func sessionRouteRedirectsBrowserToSignIn() throws {
    let access = try AccessFixture([.test(ports: [])])
    let decision = access.decide(try access.proxied("/in?a=1"))
    #expect(
      decision.location
        == "http://localhost:8080/auth/login?return_to=https%3A%2F%2Fapp.example.com%2Fin%3Fa%3D1")
    #expect(decision.requirementsRan)
    #expect(access.decide(try access.proxied("/in", host: "localhost")).location == "/auth/login?return_to=%2Fin")
    // A form cannot be repeated after sign-in. A forward-auth request of a browser can always be redirected.
    #expect(access.decide(try access.proxied("/in", method: "POST")).refusal?.code == .unauthenticated)
    #expect(access.decide(try access.asked("/in", method: "POST")).location != nil)
  }

  /// The proxy and forward-auth judge a path with slashes inside names alike, and a sign-in keeps it byte for byte.
  @Test func encodedPathIsKeptForTheWayBack() throws {
    var settings = GatewaySettings.test(publicURL: PublicURL(isSecure: true, host: "auth.example.com", port: 443))
    settings.domains = ["example.com", "example.org"]
    settings.cookieDomain = "example.com"
    let access = try AccessFixture([.test(ports: []).taking(.all)], settings: settings)
    for path in EncodedPathTests.paths {
      let back = PercentEncoding.encode(path)
      let login = "/auth/login?return_to="
      #expect(access.decide(try access.proxied(path, host: "auth.example.com")).location == login + back)
      let elsewhere = "https://auth.example.com\(login)https%3A%2F%2Fapp.example.com\(back)"
      #expect(access.decide(try access.proxied(path)).location == elsewhere)
      #expect(access.decide(try access.asked(path)).location == elsewhere)
      let handoff = "https://app.example.org/auth/handoff?return_to=\(back)"
      #expect(access.decide(try access.proxied(path, host: "app.example.org")).location == handoff)
      #expect(access.decide(try access.asked(path, host: "app.example.org")).location == handoff)
    }
  }

  @Test func sessionRouteRefusesProgramWithoutSession() throws {
    let access = try AccessFixture([.test(ports: [])])
    let refusal = try #require(access.decide(try access.proxied(browser: false)).refusal)
    let why = ["at": "routes.lua:1", "cause": RefusalCause.noSession.rawValue]
    #expect(refusal.code == .unauthenticated && refusal.detail == why)
  }

  @Test func unknownSessionIsLookedUpAndThenAdmitted() throws {
    let access = try AccessFixture([.test(ports: [])])
    let request = try access.proxied("/x", AccessFixture.cookie)
    guard case .session(let key)? = access.decide(request).lookup else {
      Issue.record("the session is not cached")
      return
    }
    #expect(key == SessionKey(hashing: Array(AccessFixture.token.utf8)))
    let session = access.session()
    let decision = access.decide(request, .live(session))
    #expect(decision.grant?.session === session && decision.grant?.tokenAddress == nil && !decision.requirementsRan)
    if case .session(let seen) = decision.shadow { #expect(seen === session) } else { Issue.record("a session") }
    #expect(access.decide(request, SessionCache.LookupResult.none).location != nil)
  }

  @Test func bearerSessionIsNotForwarded() throws {
    let access = try AccessFixture([.test("/open/**", ports: [], open: true), .test(ports: [])])
    for path in ["/open/x", "/x"] {
      let grant = access.decide(try access.proxied(path, Self.bearer), .live(access.session())).grant
      #expect(grant?.session != nil && grant?.dropsAuthorization == true)
    }
  }

  @Test func contradictoryCredentialsAreRefused() throws {
    let access = try AccessFixture([.test(ports: [], open: true)])
    for fields in [
      AccessFixture.cookie + "Authorization: Bearer other\r\n", Self.bearer + "Authorization: Bearer other\r\n",
    ] {
      let decision = access.decide(try access.proxied("/x", fields), .live(access.session()))
      #expect(decision.refusal?.code == .badRequest && decision.refusal?.detail["reason"] == "more than one token")
    }
  }

  /// Attack: a token of one root domain, sent to a host of another.
  @Test func sessionOfAnotherRootDomainIsAnonymous() throws {
    var settings = GatewaySettings.test(publicURL: PublicURL(isSecure: true, host: "auth.example.com", port: 443))
    settings.domains = ["example.com", "example.org"]
    settings.cookieDomain = "example.com"
    let access = try AccessFixture([.test(ports: [])], settings: settings)
    let cookie = "Cookie: __Secure-moongate=\(AccessFixture.token)\r\n"
    let ask = { (host: String, session: CachedSession) in
      access.decide(try access.proxied("/x", cookie, host: host), .live(session))
    }
    #expect(try ask("app.example.com", access.session()).grant?.session != nil)
    #expect(try ask("app.example.org", access.session(domain: "example.org")).grant?.session != nil)
    #expect(
      try ask("app.example.org", access.session()).location
        == "https://app.example.org/auth/handoff?return_to=%2Fx")
    #expect(
      try ask("app.example.com", access.session(domain: "example.org")).location?.hasPrefix(
        "https://auth.example.com/auth/login?") == true)
  }

  @Test func forwardAuthForTheHandoffPageIsRefused() throws {
    var settings = GatewaySettings.test(publicURL: PublicURL(isSecure: true, host: "auth.example.com", port: 443))
    settings.domains = ["example.com", "example.org"]
    let access = try AccessFixture([.test(ports: [], open: true)], settings: settings)
    let refusal = access.decide(try access.asked("/auth/handoff", host: "app.example.org")).refusal
    #expect(refusal?.code == .denied && refusal?.detail["reason"]?.contains("/auth/handoff") == true)
  }

  // MARK: an unavailable store

  @Test func unavailableStoreRefusesSessionRoute() throws {
    let access = try AccessFixture([.test(ports: [])])
    let request = try access.proxied("/x", AccessFixture.cookie)
    #expect(access.decide(request, .live(access.session()), storeIsFresh: false).refusal?.code == .storeUnavailable)
    #expect(access.decide(request, .unavailable).refusal?.code == .storeUnavailable)
    #expect(access.decide(try access.proxied(), storeIsFresh: false).location != nil, "no session, no lookup")
  }

  @Test func unavailableStoreLeavesOpenRouteAnonymous() throws {
    let access = try AccessFixture([.test(ports: [], open: true)])
    let decision = access.decide(try access.proxied("/x", Self.bearer), storeIsFresh: false)
    #expect(decision.grant?.session == nil && decision.grant?.dropsAuthorization == true)
    if case .hidden = decision.shadow {} else { Issue.record("the requester is unknown") }
  }

  // MARK: requirements

  @Test func failingGroupsMakeOpenRouteAnonymous() throws {
    let access = try AccessFixture([.test(ports: [], open: true)], change: failingGroups)
    let decision = access.decide(try access.proxied("/x", AccessFixture.cookie), .live(access.session()))
    #expect(decision.grant != nil && decision.grant?.session == nil && decision.ignored?.fault.message == "no")
  }

  @Test func failingGroupsRefuseSessionRoute() throws {
    let access = try AccessFixture([.test(ports: [])], change: failingGroups)
    let decision = access.decide(try access.proxied("/x", AccessFixture.cookie), .live(access.session()))
    #expect(decision.refusal?.code == .policyError && decision.refusal?.fault?.message == "no")
    #expect(decision.ignored == nil && decision.refusal?.account == TestGateway.account)
  }

  @Test func nonMemberIsForbidden() throws {
    let access = try AccessFixture([.test(ports: [], groups: ["staff"])]) {
      $0.accounts.groups = [staff: .members]
    }
    let request = try access.proxied("/x?a=1", AccessFixture.cookie)
    let refusal = try #require(access.decide(request, .live(access.session())).refusal)
    #expect(refusal.code == .forbidden && refusal.groups?.anyOf == [staff])
    #expect(refusal.visitor?.address == "https://app.example.com/x?a=1")
    #expect(refusal.visitor?.account.id == TestGateway.account && refusal.detail["group"] == "{ staff }")
    #expect(
      access.decide(request, .live(access.session(groups: [staff]))).grant?.entitlements.groups == [staff])
  }

  @Test func missingStepRedirectsBrowserAndRefusesProgram() throws {
    let access = try AccessFixture([
      .test(ports: [], requirement: .passed(ProviderName(test: "pin"), within: nil), flow: "step_up")
    ])
    let decision = access.decide(try access.proxied("/x", AccessFixture.cookie), .live(access.session()))
    #expect(decision.location?.hasPrefix("http://localhost:8080/auth/pin?flow=step_up&return_to=") == true)
    let refusal = access.decide(
      try access.proxied("/x", AccessFixture.cookie, browser: false), .live(access.session())
    ).refusal
    #expect(refusal?.code == .stepUpRequired && refusal?.provider == ProviderName(test: "pin"))
    #expect(refusal?.flow == "step_up" && refusal?.detail["rule"] == "require")
  }

  @Test func decideRefusesWithItsReason() throws {
    let access = try AccessFixture([.test(ports: [], decide: AccessFixture.decide)]) { generation in
      generation.verdicts[AccessFixture.decide] = { facts in
        facts.request == RequestFacts(method: "GET", host: "app.example.com", path: "/ok", query: "a=1")
          && facts.client.address == AccessFixture.peer ? .allow : .deny("not_today")
      }
    }
    let ask = { (target: String) in
      access.decide(try access.proxied(target, AccessFixture.cookie), .live(access.session()))
    }
    let allowed = try ask("/ok?a=1")
    #expect(allowed.grant != nil && allowed.requirementsRan)
    let refusal = try #require(try ask("/other").refusal)
    #expect(refusal.code == .policyReason("not_today") && refusal.account == TestGateway.account)
    #expect(refusal.detail["rule"] == AccessFixture.decide.path)
  }

  /// Attack: requests for which `decide` exceeds its budget delay all requests of an event loop. And: a user who sends
  /// such requests closes the route for other users.
  @Test func decideThatExceedsItsBudgetIsPausedForTheRequester() throws {
    let access = try AccessFixture([.test(ports: [], decide: AccessFixture.decide)]) { generation in
      generation.verdicts[AccessFixture.decide] = { facts in
        (facts.request?.path ?? "").hasPrefix("/slow")
          ? .fault(PolicyFault(kind: .steps, location: nil, message: "too slow")) : .allow
      }
    }
    func ask(_ path: String, _ account: String) throws -> RequestRefusal? {
      access.decide(try access.proxied(path, AccessFixture.cookie), .live(access.session(account: account))).refusal
    }
    for attempt in 1...6 {
      let refusal = try ask("/slow", "ac_mallory")
      let isPaused = refusal?.fault?.message.hasPrefix("not run for this account") ?? false
      #expect(refusal?.code == .policyError && isPaused == (attempt == 6))
    }
    #expect(try ask("/edit", "ac_mallory")?.code == .policyError, "paused")
    #expect(try ask("/edit", "ac_alice") == nil)
    #expect(try ask("/slow", "ac_alice")?.fault?.message == "too slow")
    #expect(try ask("/edit", "ac_alice") == nil)
  }

  /// Attack: many accounts fill the memory with pauses.
  @Test func pausesEndAndAreBounded() {
    var pauses = DecidePauses()
    let start = NIODeadline.uptimeNanoseconds(0)
    for _ in 1...5 { pauses.stopped(for: "a", at: start) }
    #expect(pauses.isPaused("a", at: start + .milliseconds(9_999)) && !pauses.isPaused("b", at: start))
    #expect(!pauses.isPaused("a", at: start + .seconds(10)))
    pauses.stopped(for: "a", at: start + .seconds(10))
    #expect(pauses.isPaused("a", at: start + .seconds(19)), "the requester has not sent a better request")
    pauses.returned(for: "a")
    #expect(!pauses.isPaused("a", at: start + .seconds(11)))
    for number in 0..<5_000 {
      for _ in 1...5 { pauses.stopped(for: "\(number)", at: start) }
      #expect(pauses.isPaused("\(number)", at: start))
    }
    #expect((0..<5_000).count { pauses.isPaused("\($0)", at: start) } <= 1_024)
  }

  // MARK: redirect loops

  @Test func thirdReturnWithoutSessionIsALoop() throws {
    let access = try AccessFixture([.test(ports: [])])
    let request = try access.proxied("/home?a=1", host: "localhost")
    for round in 1...3 {
      access.proxy.shared.redirectLoops.expect(AccessFixture.peer, at: "/home?a=1", now: access.clock.now())
      let decision = access.decide(request)
      if round < 3 {
        #expect(decision.location != nil)
      } else {
        #expect(decision.loop?.cause.hasPrefix("It blocks this site's cookies") == true)
        #expect(decision.loop?.sentence.hasPrefix("You signed in, and your browser came back without it") == true)
      }
    }
    #expect(access.decide(request).location != nil, "the explanation is followed by a fresh attempt")
  }

  // MARK: access tokens

  /// Attack: a service receives the session token of a user whom it sees as anonymous.
  @Test func bearerOfAnIgnoredSessionIsNotForwarded() throws {
    let failing = try AccessFixture([.test(ports: [], open: true)], change: failingGroups)
    let ungrouped = failing.decide(try failing.proxied("/x", Self.bearer), .live(failing.session())).grant
    #expect(ungrouped?.session == nil && ungrouped?.dropsAuthorization == true)
    var settings = GatewaySettings.test(publicURL: PublicURL(isSecure: true, host: "auth.example.com", port: 443))
    settings.domains = ["example.com", "example.org"]
    let access = try AccessFixture([.test(ports: [], open: true)], settings: settings)
    let foreign = access.decide(
      try access.proxied("/x", Self.bearer, host: "app.example.org"), .live(access.session())
    ).grant
    #expect(foreign?.session == nil && foreign?.dropsAuthorization == true)
    let invalid = access.decide(try access.proxied("/x", Self.bearer), SessionCache.LookupResult.none).grant
    #expect(invalid?.dropsAuthorization == false, "a value that is not a session token belongs to the service")
  }

  @Test func serviceTokenIsAdmittedWhereTheRouteNamesIt() throws {
    let access = try AccessFixture([
      .test("/ci/**", ports: [], tokens: RouteTokens(names: ["ci"])),
      .test("/other/**", ports: [], tokens: RouteTokens(names: ["other"])), .test(ports: []),
    ])
    let session = access.serviceToken()
    let ask = { (path: String) in try access.proxied(path, Self.serviceBearer, browser: false) }
    let grant = try #require(access.decide(try ask("/ci/x"), .live(session)).grant)
    #expect(grant.session === session && grant.tokenAddress == AccessFixture.peer && grant.dropsAuthorization)
    let other = access.decide(try ask("/other/x"), .live(session))
    #expect(other.refusal?.code == .denied && other.refusal?.sentence == "This token may not be used here.")
    // Attack: a token on a route for users. It is not even looked up.
    #expect(access.decide(try ask("/people")).refusal?.code == .unauthenticated)
  }

  @Test func refusedTokensSayWhy() throws {
    let access = try AccessFixture([.test(ports: [], tokens: .services)])
    let request = try access.proxied("/x", Self.serviceBearer)
    let refused = { (answer: SessionCache.LookupResult) in access.decide(request, answer).refusal }
    #expect(refused(.none)?.code == .unauthenticated)
    #expect(refused(.unavailable)?.code == .storeUnavailable)
    let locked = refused(.locked(until: access.clock.now() + .seconds(30)))
    #expect(locked?.code == .tooManyAttempts && locked?.retryAfter == .seconds(30))
    // Attack: a stolen token that is bound to networks gets the same sentence as an unknown one.
    let bound = refused(
      .live(access.serviceToken(networks: [AddressBlock(network: [203, 0, 113, 0], prefix: 24)])))
    #expect(bound?.code == .unauthenticated && bound?.sentence == refused(.none)?.sentence)
    // Attack: a token in addition to a cookie.
    let both = access.decide(try access.proxied("/x", Self.serviceBearer + AccessFixture.cookie))
    #expect(both.refusal?.code == .badRequest)
    // A session that the store returns for a token's text is not a token.
    #expect(refused(.live(access.session()))?.code == .unauthenticated)
  }

  @Test func unreadableBasicIsRefusedUnlessThereIsASession() throws {
    let access = try AccessFixture([.test(ports: [], tokens: .services)])
    let basic = "Authorization: Basic !\r\n"
    #expect(access.decide(try access.proxied("/x", basic)).refusal?.code == .badRequest)
    #expect(
      access.decide(try access.proxied("/x", basic + AccessFixture.cookie), .live(access.session())).grant != nil)
  }

  /// A program cannot complete a sign-in step, so it is never redirected.
  @Test func tokenIsNotRedirectedToAStep() throws {
    let access = try AccessFixture([
      .test(ports: [], requirement: .passed(ProviderName(test: "pin"), within: nil), tokens: .services)
    ])
    let decision = access.decide(try access.proxied("/x", Self.serviceBearer), .live(access.serviceToken()))
    #expect(decision.refusal?.code == .stepUpRequired)
  }

  // MARK: proxy and forward-auth

  /// The proxy and forward-auth decide the same about the same request.
  @Test func proxyAndForwardAuthDecideTheSame() throws {
    let pin = ProviderName(test: "pin")
    let routes: [Route] = [
      .test("/open/**", ports: [], open: true), .test("/staff/**", ports: [], groups: ["staff"]),
      .test("/pin/**", ports: [], requirement: .passed(pin, within: nil)),
      .test("/mail/**", ports: [], requirement: .emailVerified),
      .test("/decide/**", ports: [], decide: AccessFixture.decide), .test("/ci/**", ports: [], tokens: .services),
      .test("/get/**", methods: ["GET"], ports: []),
    ]
    let access = try AccessFixture(routes) { generation in
      generation.accounts.groups = [staff: .members]
      generation.verdicts[AccessFixture.decide] = { $0.request?.query == "yes" ? .allow : .deny("not_today") }
    }
    let answers: [SessionCache.LookupResult?] = [
      nil, SessionCache.LookupResult.none, .unavailable, .live(access.session()),
      .live(access.session(groups: [staff])), .live(access.serviceToken()),
      .locked(until: access.clock.now() + .seconds(5)),
    ]
    let credentials = [
      "", AccessFixture.cookie, Self.bearer, Self.serviceBearer, AccessFixture.cookie + Self.bearer,
      AccessFixture.cookie + Self.serviceBearer, AccessFixture.cookie + "Authorization: Bearer x\r\n",
      "Cookie: moongate=a; moongate=b\r\n", "Authorization: Basic !\r\n", "Authorization: Basic bWU6c2VjcmV0\r\n",
    ]
    let targets = [
      "/open/x", "/staff/x?a=1", "/pin/x", "/mail/x", "/decide/x", "/decide/x?yes", "/ci/x", "/get/x", "/nowhere",
      "/st%61ff/x;y",
    ]
    var outcomes: Set<String> = []
    for target in targets {
      for fields in credentials {
        for answer in answers {
          for (storeIsFresh, browser) in [(true, true), (true, false), (false, true)] {
            let proxied = access.decide(
              try access.proxied(target, fields, browser: browser), answer, storeIsFresh: storeIsFresh)
            let asked = access.decide(
              try access.asked(target, fields, browser: browser), answer, storeIsFresh: storeIsFresh)
            #expect(proxied.summary == asked.summary, "\(target) \(fields)")
            #expect(proxied.route === asked.route && proxied.requirementsRan == asked.requirementsRan)
            outcomes.insert(String(proxied.summary.prefix { $0 != "[" }))
          }
        }
      }
    }
    for outcome in ["pass", "redirect", "no route", "refuse", "look up the session", "look up the token"] {
      #expect(outcomes.contains { $0.hasPrefix(outcome) }, "\(outcome)")
    }
  }
}
