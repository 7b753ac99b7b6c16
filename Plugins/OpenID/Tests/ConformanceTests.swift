import Foundation
import OpenID
import MoongateConformance
import MoongateSDK
import Testing

@Suite("Conformance") struct ConformanceTests {
  /// A user at the provider's site. The code is redeemed for a token for the current step.
  private static func subject(_ web: TestProvider, _ entry: OpenID.Entry) -> ConformanceSubject {
    var subject = ConformanceSubject(of: OpenID(entry).descriptor)
    subject.start = TestProvider.now
    subject.settings = ["issuer": .text(TestProvider.issuer), "client_id": "client"]
    if entry == .oauth { subject.settings = ["preset": "discord", "client_id": "client"] }
    subject.web = { request in try? await web.send(request) }
    subject.malformedSubmits = [["code": .other], ["code": .text(String(repeating: "x", count: 100_000))]]
    subject.right = { step in
      let query = step.redirect.flatMap { URLComponents(string: $0)?.queryItems } ?? []
      let nonce = query.first { $0.name == "nonce" }?.value ?? ""
      let state = query.first { $0.name == "state" }?.value ?? ""
      let token = try TestKey.p256.sign(
        ["alg": "ES256", "kid": "p256", "typ": "JWT"],
        [
          "iss": TestProvider.issuer, "aud": "client", "sub": "42", "iat": Double(step.now) / 1000,
          "exp": Double(step.now) / 1000 + 600,
          "nonce": nonce,
          "email": "asha@example.com", "email_verified": true,
        ])
      web.change {
        $0.idToken = token
        $0.others = [
          "https://discord.com/api/oauth2/token": (200, #"{"access_token":"t0ken"}"#),
          "https://discord.com/api/users/@me": (200, #"{"id":"42","email":"asha@example.com","verified":true}"#),
        ]
      }
      return ["code": .text("c0de-of-the-suite"), "state": .text(state)]
    }
    subject.wrong = { _ in ["code": .text("c0de-of-the-suite"), "state": .text("somebody-else's")] }
    return subject
  }

  @Test("a redirecting provider conforms", arguments: OpenID.Entry.allCases) func holds(entry: OpenID.Entry) async {
    let web = TestProvider()
    web.change { $0.published = [TestKey.p256.published] }
    let report = await Conformance.run(OpenID(entry), Self.subject(web, entry))
    #expect(report.findings == [])
    let held = report.lines.filter { $0.verdict == .held }.map(\.rule)
    #expect(
      held == [
        .descriptor, .facts, .malformed, .proof, .rounds, .askedFields, .beginTwice, .concurrency, .refusals, .counted,
        .outcomes, .faults, .secrets,
        .cancellation, .cleanup,
      ])
  }

  /// With the descriptor's defaults only: the site never answers, a cancelled step ends, and the next one can begin.
  @Test("a cancelled step does not wait for a site that hangs") func hangs() async {
    let report = await Conformance.run(OpenID(), patience: .seconds(5))
    #expect(report.findings == [])
    #expect(report.lines.contains { $0.rule == .cancellation && $0.verdict == .held })
  }
}
