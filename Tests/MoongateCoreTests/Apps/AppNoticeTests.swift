import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// An app's server: records requests, and answers as the test says.
private final class NoticedSite: WebClient {
  private let state = Mutex((requests: [WebRequest](), status: 200))

  var requests: [WebRequest] { state.withLock { $0.requests } }
  /// 0: it does not answer.
  var status: Int {
    get { state.withLock { $0.status } }
    set { state.withLock { $0.status = newValue } }
  }

  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer {
    let status = state.withLock { state in
      state.requests.append(request)
      return state.status
    }
    if status == 0 { throw WebFault(reason: "no answer") }
    return WebAnswer(status: status, body: [])
  }
}

/// Logout tokens (OpenID Connect Back-Channel Logout 1.0).
@Suite struct AppNoticeTests {
  private typealias Bench = AppsTestBench
  private static let url = "https://grafana.example.com/backchannel"

  private func notices(_ bench: Bench, _ site: NoticedSite) -> AppNotices {
    AppNotices(apps: bench.apps, web: site, logger: CapturedLog().logger)
  }

  private func token(_ request: WebRequest) -> SecretText {
    SecretText(String(String(decoding: request.body, as: UTF8.self).dropFirst("logout_token=".count)))
  }

  @Test func signOutIsToldOnce() async throws {
    let app = try Bench.app(signOutNotice: Self.url)
    let bench = try await Bench(app)
    let site = NoticedSite()
    let session = try await bench.session()
    let tokens = try await bench.tokens(app, in: session)
    _ = try await notices(bench, site).step()
    #expect(site.requests.isEmpty)
    try await bench.apply(.endSession(session.session.token))
    _ = try await notices(bench, site).step()
    _ = try await notices(bench, site).step()
    #expect(site.requests.count == 1)
    let request = try #require(site.requests.first)
    #expect(request.method == "POST" && request.url == Self.url)
    let claims = try await bench.claims(token(request), type: JWTType.logoutToken)
    #expect(claims["sub"] == .text(Bench.account) && claims["aud"] == .text("grafana"))
    let idToken = try await bench.claims(tokens.idToken)
    #expect(claims["sid"] == idToken["sid"] && claims["nonce"] == nil && claims["jti"] != nil)
    #expect(claims["events"]?.members?.keys.sorted() == ["http://schemas.openid.net/event/backchannel-logout"])
    // Attack: a logout token shown as an ID token.
    #expect(await bench.apps.hint(token(request).reveal(), bench.call) == nil)
  }

  /// The first time again after five seconds, then at growing times for an hour.
  @Test func failedNoticesAreRepeatedForAnHour() async throws {
    let app = try Bench.app(signOutNotice: Self.url)
    let bench = try await Bench(app)
    let site = NoticedSite()
    let session = try await bench.session()
    _ = try await bench.tokens(app, in: session)
    try await bench.apply(.endSession(session.session.token))
    site.status = 0
    var seconds: [Int] = []
    for second in 0..<3700 {
      let before = site.requests.count
      if [0, 5, 15, 35].contains(second) { site.status = second == 5 ? 500 : 0 }
      _ = try await notices(bench, site).step()
      if site.requests.count > before { seconds.append(second) }
      bench.clock.advance(by: .seconds(1))
    }
    #expect(seconds == [0, 5, 15, 35, 75, 155, 315, 635, 1275, 2555])
  }

  /// Attack: one app does not answer, and has so many ended sessions that no other app is told for minutes.
  @Test func anAppThatDoesNotAnswerKeepsNoOtherWaiting() async throws {
    let app = try Bench.app(signOutNotice: Self.url)
    let other = try Bench.app("wiki", signOutNotice: "https://wiki.example.com/backchannel")
    let bench = try await Bench(app, other)
    let site = NoticedSite()
    site.status = 0
    for number in 0..<60 {
      let session = try await bench.session()
      _ = try await bench.tokens(number == 59 ? other : app, in: session)
      bench.clock.advance(by: .milliseconds(1))
      try await bench.apply(.endSession(session.session.token))
    }
    #expect(try await notices(bench, site).step())
    #expect(site.requests.count { $0.url == "https://wiki.example.com/backchannel" } == 1)
    #expect(site.requests.count { $0.url == Self.url } == 5)
  }

  @Test func noticeOfAnAppWithoutAddressIsDropped() async throws {
    let app = try Bench.app(signOutNotice: Self.url)
    let bench = try await Bench(app)
    let site = NoticedSite()
    let session = try await bench.session()
    _ = try await bench.tokens(app, in: session)
    try await bench.apply(.endSession(session.session.token))
    bench.reload(try Bench.app())
    _ = try await notices(bench, site).step()
    bench.reload(app)
    bench.clock.advance(by: .seconds(60))
    _ = try await notices(bench, site).step()
    #expect(site.requests.isEmpty)
  }
}
