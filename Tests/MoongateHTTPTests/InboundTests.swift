import Crypto
import Foundation
import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import PhoneOTP
import Synchronization
import Testing

@testable import MoongateHTTP

/// A vendor whose site posts callbacks and whose servers send webhooks.
private final class Vendor: FullProvider, WebhookReceiver {
  static let key = SymmetricKey(data: Array("shared".utf8))

  let returned = Mutex<[[String: String]]>([])
  let called = Mutex<[WebhookRequest]>([])
  /// Calls with the body `slow`, which wait until they are released.
  let held = Mutex<[CheckedContinuation<Void, Never>]>([])
  private let receives: Bool

  init(receives: Bool = true) { self.receives = receives }

  var descriptor: ProviderDescriptor {
    ProviderDescriptor(
      name: "vendor", beginFields: [], submitFields: [], settings: [],
      policy: PolicySource(file: "vendor.lua", text: ""),
      identifierKinds: [.federated], outcomes: [Outcome(.oauthFailed, "No.")],
      presentation: .externalSite(button: "Continue with Vendor"),
      callbackFields: ["code", "id_token", "user"].map { InputField(name: $0, kind: .text, isRequired: false) },
      receivesWebhooks: receives)
  }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .redirect(to: "https://vendor.example/?state=\(step.callback?.state ?? "")", state: [])
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    returned.withLock {
      $0.append(input.fields.compactMapValues { if case .text(let text) = $0 { text } else { nil } })
    }
    guard try input.optionalText("code") == "grant" else { return .refused(.oauthFailed) }
    return .proved(Proof(proved: [Identifier(kind: .federated, value: "vendor 1", display: "Asha")]))
  }

  func receive(_ webhook: WebhookRequest, with tools: StepTools) async throws -> WebhookAnswer {
    called.withLock { $0.append(webhook) }
    if Array(webhook.body) == Array("slow".utf8) {
      await withCheckedContinuation { continuation in held.withLock { $0.append(continuation) } }
    }
    let mac = Self.signature(webhook.body)
    guard webhook.header("vendor-signature") == mac else { return .refused(.unauthenticated) }
    switch String(decoding: webhook.body, as: UTF8.self) {
    case "broken": throw WebFault(reason: "down")
    case "odd": return .refused(.malformed)
    case "challenge=1": return .accepted(text: "<script>1</script>")
    case "long": return .accepted(text: String(repeating: "x", count: 4_097))
    default: return .accepted()
    }
  }

  static func signature(_ body: some Collection<UInt8>) -> String {
    HMAC<SHA256>.authenticationCode(for: Data(body), using: key).map {
      String($0 >> 4, radix: 16) + String($0 & 15, radix: 16)
    }.joined()
  }
}

/// Requests from other sites and their servers: callbacks by POST, and webhooks.
@Suite struct InboundTests {
  private func run(_ vendor: Vendor = Vendor(), _ body: @escaping @Sendable (Client, Vendor) async throws -> Void)
    async throws
  {
    let gateway = try HTTPGateway(providers: [PhoneOTP(), vendor]) { generation in
      generation.flows["site"] = .test("site", purpose: .signIn, account: .any, steps: [.test("vendor")])
    }
    try await gateway.run { client in try await body(client, vendor) }
  }

  // MARK: Callbacks

  /// A browser that has been redirected to the vendor's site.
  private func away(_ client: Client) async throws -> (Browser, state: String) {
    let browser = Browser(client)
    try await browser.visit("/auth/login?flow=site")
    let page = try await browser.post("/auth/step", ["flow": "site", "with": "vendor"])
    let state = try #require(
      page.text.components(separatedBy: "?state=").dropFirst().first?.prefix { $0 != "\"" && $0 != "&" })
    return (browser, String(state))
  }

  /// The vendor's form as a browser posts it across sites: with a foreign Origin and without cookies.
  private func post(
    _ client: Client, _ body: String, type: String = "application/x-www-form-urlencoded",
    cookies: [(String, String)] = []
  )
    async throws
    -> Answer
  {
    try await client.send(
      .post, "/auth/callback/vendor",
      headers: [("Accept", "text/html"), ("Origin", "https://vendor.example"), ("Content-Type", type)] + cookies,
      body: body)
  }

  @Test func formOfAnotherSiteSignsIn() async throws {
    try await run { (client, vendor) async throws in
      let (browser, state) = try await away(client)
      let user = PercentEncoding.encode("{\"name\":\"Asha\"}")
      let posted = try await post(client, "state=\(state)&code=grant&user=\(user)&is_admin=1")
      let address = try #require(posted.header("Location"))
      #expect(
        posted.status == 303 && address.hasPrefix("/auth/callback/vendor?state=") && !address.contains("grant")
          && !address.contains("Asha"))
      #expect(
        posted.setCookies == [] && posted.header("Referrer-Policy") == "no-referrer"
          && posted.header("Cache-Control") == "no-store")
      let done = try await browser.visit(address)
      #expect(done.status == 303 && browser.cookies["moongate"] != nil, "\(done.text)")
      #expect(vendor.returned.withLock { $0 } == [["code": "grant", "user": "{\"name\":\"Asha\"}"]])
      // Attack: the address is opened a second time.
      #expect(try await browser.visit(address).status == 409)
      #expect(vendor.returned.withLock { $0.count } == 1)
    }
  }

  @Test func addressOfAnotherSiteSignsInAsBefore() async throws {
    try await run { (client, vendor) async throws in
      let (browser, state) = try await away(client)
      #expect(try await browser.visit("/auth/callback/vendor?state=\(state)&code=grant").status == 303)
      #expect(browser.cookies["moongate"] != nil && vendor.returned.withLock { $0 } == [["code": "grant"]])
    }
  }

  /// Attack: login CSRF. The attacker's page posts the attacker's grant into the victim's browser, to sign it in to the
  /// attacker's account.
  @Test func postOfAForeignGrantIsRefused() async throws {
    try await run { (client, vendor) async throws in
      let (_, state) = try await away(client)
      let (victim, _) = try await away(client)
      let posted = try await post(client, "state=\(state)&code=grant", cookies: victim.cookieHeader)
      let answer = try await victim.visit(try #require(posted.header("Location")))
      #expect(answer.status == 404 && victim.cookies["moongate"] == nil)
      #expect(vendor.returned.withLock { $0 } == [])
    }
  }

  /// Attack: duplicate parameters, which the gateway and the provider could read differently; forged states; other
  /// content types and oversized bodies.
  @Test func ambiguousPostIsRefused() async throws {
    try await run { (client, vendor) async throws in
      let (_, state) = try await away(client)
      #expect(try await post(client, "state=\(state)&code=a&code=b").status == 400)
      #expect(try await post(client, "state=\(state)&state=x&code=a").status == 400)
      #expect(try await post(client, "state=forged&code=a").status == 404)
      #expect(try await post(client, "code=a").status == 404)
      #expect(try await post(client, "{\"state\":\"\(state)\"}", type: "application/json").status == 415)
      #expect(try await post(client, "state=\(state)&code=" + String(repeating: "x", count: 65_536)).status == 413)
      #expect(try await post(client, "state=\(state)&code=" + String(repeating: "x", count: 16_385)).status == 422)
      #expect(vendor.returned.withLock { $0 } == [])
    }
  }

  /// Attack: a callback for a provider that is not an external site, or that does not exist.
  @Test func onlyOtherSitesPostCallbacks() async throws {
    try await run { (client, _) async throws in
      for name in ["phone_otp", "nobody", "%2e%2e"] {
        let answer = try await client.send(
          .post, "/auth/callback/\(name)", headers: [("Content-Type", "application/x-www-form-urlencoded")],
          body: "state=x")
        #expect(answer.status == 404, "\(name)")
      }
    }
  }

  /// Attack: the exemption from the Origin check for callbacks and webhooks extends to the gateway's other forms.
  @Test func otherFormsRequireTheGatewaysOrigin() async throws {
    try await run { (client, _) async throws in
      for path in ["/auth/step", "/auth/login", "/auth/logout", "/auth/account"] {
        let answer = try await client.send(
          .post, path,
          headers: [("Origin", "https://vendor.example"), ("Content-Type", "application/x-www-form-urlencoded")],
          body: "flow=site")
        #expect(answer.status == 403 && answer.problem() == "origin_refused" || answer.status == 405, "\(path)")
      }
    }
  }

  // MARK: Webhooks

  private func hook(
    _ client: Client, _ body: String, signed: Bool = true, name: String = "vendor", headers: [(String, String)] = []
  ) async throws -> Answer {
    let signature = signed ? [("Vendor-Signature", Vendor.signature(Array(body.utf8)))] : []
    return try await client.send(.post, "/auth/hook/\(name)", headers: signature + headers, body: body)
  }

  @Test func signedRequestReachesItsProvider() async throws {
    try await run { (client, vendor) async throws in
      let answer = try await hook(client, "approved=7", headers: [("X-Vendor-Id", "a"), ("Content-Type", "text/odd")])
      #expect(answer.status == 204 && answer.setCookies == [])
      let seen = try #require(vendor.called.withLock { $0.first })
      #expect(
        String(decoding: seen.body, as: UTF8.self) == "approved=7" && seen.header("x-vendor-id") == "a"
          && !seen.remote.isEmpty)
      let challenge = try await hook(client, "challenge=1")
      // Attack: the text is rendered as a page of the gateway's origin.
      #expect(challenge.status == 200 && challenge.header("Content-Type") == "text/plain; charset=utf-8")
      #expect(challenge.header("X-Content-Type-Options") == "nosniff")
      #expect(try await hook(client, "odd").problem() == "bad_request")
      #expect(try await hook(client, "broken").status == 503)
      #expect(try await hook(client, "long").status == 503)
      let lines = MetricText.write(client.gateway.engine.providerMetrics.families)
      for (outcome, count) in [("accepted", 2), ("refused", 1), ("fault", 2)] {
        #expect(
          lines.contains(
            "moongate_provider_calls_total{provider=\"vendor\",call=\"hook\",outcome=\"\(outcome)\"} \(count)"),
          "\(lines)")
      }
    }
  }

  /// Attack: anyone calls the webhook without a signature, or with a wrong one.
  @Test func requestWithoutASignatureIsRefused() async throws {
    try await run { (client, _) async throws in
      let answer = try await hook(client, "approved=7", signed: false)
      #expect(answer.status == 401 && answer.problem() == "unauthenticated")
      #expect(
        try await hook(
          client, "approved=7", signed: false, headers: [("Vendor-Signature", Vendor.signature(Array("x".utf8)))]
        ).status == 401)
      #expect(
        try await hook(client, "approved=7", headers: [("Vendor-Signature", "second")]).status == 401,
        "two signatures are refused")
    }
  }

  /// Attack: a webhook for a provider that receives none or is not configured, or by another method.
  @Test func webhookPathExistsOnlyIfDeclared() async throws {
    try await run { (client, _) async throws in
      for name in ["phone_otp", "nobody"] { #expect(try await hook(client, "x", name: name).status == 404) }
      #expect(try await client.send(.get, "/auth/hook/vendor").status == 405)
    }
    try await run(Vendor(receives: false)) { (client, vendor) async throws in
      #expect(try await hook(client, "x").status == 404)
      #expect(vendor.called.withLock { $0.isEmpty })
    }
  }

  /// Attack: a body of 10 MB; thousands of header fields. The provider is not called.
  @Test func tooMuchIsRefusedWithoutACall() async throws {
    try await run { (client, vendor) async throws in
      #expect(try await hook(client, String(repeating: "x", count: 10_000_000)).status == 413)
      #expect(try await hook(client, "x", headers: (0..<101).map { ("X-Flood-\($0)", "1") }).status == 431)
      #expect(try await hook(client, "x", headers: [("X-Long", String(repeating: "x", count: 16_384))]).status == 431)
      #expect(vendor.called.withLock { $0.isEmpty })
      #expect(try await hook(client, String(repeating: "x", count: 65_536)).status == 204)
    }
  }

  /// Attack: a provider, or its log, receives the cookies of a user whose browser was made to post here.
  @Test func cookiesAndForwardedAddressesAreNotHandedOn() async throws {
    try await run { (client, vendor) async throws in
      let owner = try await Browser.owner(client)
      let more = [
        ("X-Forwarded-For", "10.0.0.1"), ("Moongate-Device", "d"), ("Origin", "https://elsewhere.example"),
        ("Authorization", "Basic dg=="), ("Remote-User", "ac_1"), ("X_Forwarded_For", "10.0.0.1"),
        ("Forwarded", "for=10.0.0.1"), ("X-HTTP-Method-Override", "DELETE"),
      ]
      #expect(try await hook(client, "x", headers: owner.cookieHeader + more).status == 204)
      let names = try #require(vendor.called.withLock { $0.first }).headers.map(\.name)
      #expect(
        !names.contains { name in
          ["cookie", "moongate-device", "remote-", "forwarded", "method"].contains { name.contains($0) }
        } && names.contains("authorization"))
    }
  }

  /// Attack: a flood of requests, each of which calls the provider.
  @Test func floodIsHeldBeforeTheCall() async throws {
    try await run { (client, vendor) async throws in
      for _ in 0..<100 { #expect(try await hook(client, "x", signed: false).status == 401) }
      let held = try await hook(client, "x")
      #expect(held.status == 429 && held.problem() == "rate_limited" && held.header("Retry-After") == "1")
      #expect(vendor.called.withLock { $0.count } == 100)
      client.gateway.clock.advance(by: .seconds(1))
      #expect(try await hook(client, "x").status == 204)
    }
  }

  /// A gateway whose clients have the address in X-Forwarded-For.
  private func runBehindProxy(_ body: @escaping @Sendable (Client, Vendor) async throws -> Void) async throws {
    var settings = GatewaySettings.test()
    settings.trustedProxies = [try #require(AddressBlock("0.0.0.0/32"))]
    let vendor = Vendor()
    let gateway = try HTTPGateway(providers: [PhoneOTP(), vendor], settings: settings) { generation in
      generation.flows["site"] = .test("site", purpose: .signIn, account: .any, steps: [.test("vendor")])
    }
    try await gateway.run { client in try await body(client, vendor) }
  }

  private func hook(_ client: Client, _ body: String, from address: String, signed: Bool = true) async throws -> Int {
    try await hook(client, body, signed: signed, headers: [("X-Forwarded-For", address)]).status
  }

  /// Attack: unsigned calls from many addresses use up what the vendor's calls need.
  @Test func unsignedCallsLeaveRoomForTheVendor() async throws {
    try await runBehindProxy { (client, _) async throws in
      #expect(try await hook(client, "x", from: "192.0.2.1") == 204)
      for _ in 0..<10 {
        for host in 1...60 { #expect(try await hook(client, "x", from: "198.51.100.\(host)", signed: false) == 401) }
      }
      #expect(try await hook(client, "x", from: "192.0.2.1") == 204, "an address that was accepted before")
      #expect(try await hook(client, "x", from: "192.0.2.2") == 204, "a new address of the vendor")
      for _ in 0..<200 { #expect(try await hook(client, "x", from: "192.0.2.1") == 204) }
    }
  }

  /// Attack: unsigned calls that keep the provider busy, so that the vendor's find no room.
  @Test func unsignedCallsThatRunAreBounded() async throws {
    try await runBehindProxy { (client, vendor) async throws in
      #expect(try await hook(client, "x", from: "192.0.2.1") == 204)
      try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 0..<WebhookAdmission.mostUnknown {
          group.addTask { try await hook(client, "slow", from: "198.51.100.\(number / 4 + 1)", signed: false) }
        }
        while vendor.held.withLock({ $0.count }) < WebhookAdmission.mostUnknown { await Task.yield() }
        #expect(try await hook(client, "x", from: "198.51.100.99", signed: false) == 429)
        #expect(try await hook(client, "x", from: "192.0.2.1") == 204)
        for continuation in vendor.held.withLock({ $0 }) { continuation.resume() }
        for try await status in group { #expect(status == 401) }
        #expect(try await hook(client, "x", from: "198.51.100.99", signed: false) == 401)
      }
    }
  }

  /// Attack: one address takes all permits of unknown addresses.
  @Test func permitsAreBoundedPerAddressAndProvider() {
    let admission = WebhookAdmission()
    let now = Timestamp(milliseconds: 0)
    let caller = { (name: StaticString, host: UInt8) in
      WebhookCaller(provider: ProviderName(test: name), address: [192, 0, 2, host])
    }
    for _ in 0..<WebhookAdmission.mostPerAddress { #expect(admission.begin(caller("a", 1), at: now) != nil) }
    #expect(admission.begin(caller("a", 1), at: now) == nil && admission.begin(caller("b", 1), at: now) != nil)
    if let permit = admission.begin(caller("a", 2), at: now) { admission.end(permit, isAccepted: true, at: now) }
    for _ in 0..<WebhookAdmission.mostKnown { #expect(admission.begin(caller("a", 2), at: now) != nil) }
    #expect(admission.begin(caller("a", 2), at: now) == nil)
    // A day later, the address is as unknown as any other.
    let later = now + .seconds(86_400)
    for _ in 0..<WebhookAdmission.mostPerAddress { #expect(admission.begin(caller("a", 2), at: later) != nil) }
    #expect(admission.begin(caller("a", 2), at: later) == nil)
  }
}
