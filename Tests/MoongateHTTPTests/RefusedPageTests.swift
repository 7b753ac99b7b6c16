import Foundation
import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK
import MoongateTesting
import NIOCore
import PhoneOTP
import Testing

@testable import MoongateHTTP

/// The status and the headers of pages that show a refusal.
@Suite struct RefusedPageTests {
  /// The refusals of the token form carry no wait today, so this renders the form with one that does.
  @Test func aPageHasTheStatusAndTheHeadersOfItsRefusal() throws {
    let pages = try PageRenderer(logger: CapturedLog().logger)
    let generation = TestGeneration.gateway(for: [PhoneOTP()])
    let request = Request(
      head: HTTPRequest(method: .post, scheme: "http", authority: "localhost:8080", path: TokenPage.path),
      body: RequestBody(buffer: ByteBuffer()))
    let form = TokenModel.Form(name: "laptop", options: [], problem: "Not now.", nameIsInvalid: false)
    let model = TokenModel(form: form, secret: nil, routes: [])
    let refusal = Refusal(.rateLimited, decision: DecisionID(text: "dc_test"), retryAfter: .milliseconds(6500))
    let refused = pages.page(model, title: { _ in "Token" }, refusal: refusal, request, generation)
    #expect(refused.status == .tooManyRequests && refused.headers[.retryAfter] == "7")
    let plain = pages.page(model, title: { _ in "Token" }, request, generation)
    #expect(plain.status == .ok && plain.headers[.retryAfter] == nil)
  }

  /// A flow whose step could not be begun has an address of its own, where the page shows the refusal again.
  @Test func contactPageOfAFlowShowsTheWait() async throws {
    let gateway = try HTTPGateway { generation in
      generation.flows["step_up"] = .test("step_up", account: .existing, steps: [.test("phone_otp")])
    }
    try await gateway.run { client in
      let browser = try await Browser.owner(client)
      #expect(try await browser.post("/auth/verify", ["flow": "step_up"]).status == 303)
      let first = try await browser.post("/auth/verify", ["flow": "step_up"])
      #expect(first.status == 429 && first.header("Retry-After") == "60")
      let field = try #require(first.text.components(separatedBy: "name=\"id\"").dropFirst().first)
      let id = try #require(Browser.attribute("value", field))
      let again = try await browser.post("/auth/verify?id=\(id)", ["action": "instead", "provider": "phone_otp"])
      #expect(again.status == 429 && again.header("Retry-After") == "60")
      #expect(again.text.contains("Please wait before you ask for another code."))
      let logged = client.gateway.log.lines.count { $0.hasPrefix("debug refused code=resend_too_soon ") }
      #expect(logged == 2, "each page logs its refusal")
    }
  }
}
