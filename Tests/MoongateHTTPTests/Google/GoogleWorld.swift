import Crypto
import Foundation
import GoogleOAuth
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import MoongateCore
import MoongateHTTP
import MoongateMockGoogle
import MoongateSDK
import MoongateTesting
import NIOCore
import NIOPosix
import PhoneOTP
import Synchronization
import Testing

/// The gateway with Google beside the phone code, and mock Google that it reaches without a socket.
struct GoogleWorld: Sendable {
  static let issuer = "https://google.test"
  static let callback = "http://localhost:8080/auth/callback/google_oauth"
  static let asha = "100000000000000000001"

  let gateway: TestGateway
  let google: MockWeb
  private let application: Application<GatewayResponder>

  init(change: (inout TestGeneration) -> Void = { _ in }) throws {
    let providers: [any Provider] = [PhoneOTP(), GoogleOAuth()]
    let name: ProviderName = "google_oauth"
    var settings = GatewaySettings.test()
    settings.redirectHosts = ["app.example.com"]
    var generation = TestGeneration.gateway(for: providers, settings: settings)
    generation.gateway.providers[name] = ProviderSettings(
      texts: ["issuer": Self.issuer, "client_id": "client"], secrets: ["client_secret": SecretText("s3cret")])
    generation.policies[name] = .test(
      name, limits: [.test("verify_flow", on: .verify, per: .flow, max: 5, window: .seconds(900))])
    change(&generation)
    google = MockWeb()
    gateway = try TestGateway(providers: providers, generation: generation, web: google)
    google.use(gateway.clock)
    application =
      PublicApplication(
        engine: gateway.engine, store: gateway.store, generations: gateway.generations, providers: gateway.providers,
        clock: gateway.clock,
        random: gateway.random, audit: gateway.audit, keySet: { "{}" },
        pages: try PageRenderer(logger: gateway.log.logger),
        eventLoops: MultiThreadedEventLoopGroup.singleton, logger: gateway.log.logger
      ).application
  }

  func run(_ body: @escaping @Sendable (Client) async throws -> Void) async throws {
    try await application.test(.router) { client in try await body(Client(client: client, gateway: gateway)) }
  }
}

/// Mock Google as the gateway's web, and as a person's browser sees it.
final class MockWeb: WebClient {
  private let site: MockGoogleSite
  let provider: MockGoogle
  private let clock = ClockBox()

  init() {
    let client = MockGoogle.Client(id: "client", secret: "s3cret", redirects: [GoogleWorld.callback])
    let clock = clock
    provider = MockGoogle(
      issuer: GoogleWorld.issuer, clients: { [client] }, now: { clock.now },
      random: { count in (0..<count).map { _ in UInt8.random(in: 0...255) } },
      sleep: { _ in })
    site = MockGoogleSite(provider)
  }

  func use(_ gateway: ManualClock) { clock.use(gateway) }

  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer {
    var headers = HTTPFields()
    for (name, value) in request.headers { if let name = HTTPField.Name(name) { headers[name] = value } }
    let path = String(request.url.dropFirst(GoogleWorld.issuer.count))
    let (response, body) = await ask(HTTPRequest.Method(request.method) ?? .get, path, headers, request.body)
    return WebAnswer(status: response.status.code, body: body)
  }

  /// A person goes to an address of Google's and does something there.
  /// - Returns: where Google sends them back to.
  func choose(_ address: String, _ fields: [String: String]) async throws -> String {
    let page = await ask(.get, String(address.dropFirst(GoogleWorld.issuer.count)))
    let html = String(decoding: page.1, as: UTF8.self)
    let start = try #require(html.firstRange(of: "name=\"request\" value=\""), "\(page.0.status) \(html)")
    let request = String(html[start.upperBound...].prefix { $0 != "\"" })
    let answer = await post("/authorize", fields.merging(["request": request]) { $1 })
    return try #require(answer.0.headers[.location], "\(String(decoding: answer.1, as: UTF8.self))")
  }

  func post(_ path: String, _ fields: [String: String]) async -> (Response, [UInt8]) {
    let body = fields.map { "\($0.key)=\(PercentEncoding.encode($0.value))" }.joined(separator: "&")
    return await ask(.post, path, [.contentType: "application/x-www-form-urlencoded"], Array(body.utf8))
  }

  private func ask(_ method: HTTPRequest.Method, _ path: String, _ headers: HTTPFields = [:], _ body: [UInt8] = [])
    async -> (Response, [UInt8])
  {
    let head = HTTPRequest(method: method, scheme: "https", authority: "google.test", path: path, headerFields: headers)
    let response = await site.respond(to: Request(head: head, body: RequestBody(buffer: ByteBuffer(bytes: body))))
    let writer = BodyCollector()
    try? await response.body.write(writer)
    return (response, writer.bytes)
  }
}

/// The gateway's clock, which is there only after the web that needs it.
private final class ClockBox: Sendable {
  private let clock = Mutex<ManualClock?>(nil)

  func use(_ gateway: ManualClock) { clock.withLock { $0 = gateway } }
  var now: Int64 { clock.withLock { $0?.now().milliseconds ?? 0 } }
}

private final class BodyCollector: ResponseBodyWriter {
  private(set) var bytes: [UInt8] = []

  func write(_ buffer: ByteBuffer) async throws { bytes += buffer.readableBytesView }
  func finish(_ trailingHeaders: HTTPFields?) async throws {}
}

extension Browser {
  /// Presses "Continue with Google" on a page that the browser looks at.
  /// - Returns: the address at Google's.
  func continuesWithGoogle(_ path: String = "/auth/login", returnTo: String? = nil) async throws -> String {
    try await visit(path + (returnTo.map { "?return_to=" + PercentEncoding.encode($0) } ?? ""))
    #expect(page?.text.contains("Continue with Google") == true)
    let answer = try await submit(["provider": "google_oauth"])
    #expect(answer.status == 200, "\(answer.text)")
    return try #require(Self.address(on: answer))
  }

  /// Where the page between the sites leads by itself.
  static func address(on answer: Answer) -> String? {
    answer.text.firstRange(of: "content=\"0; url=").map { start in
      String(answer.text[start.upperBound...].prefix { $0 != "\"" }).replacing("&amp;", with: "&").replacing(
        "&#x3D;", with: "="
      ).replacing(
        "&#61;", with: "=")
    }
  }

  /// Comes back from Google.
  func returns(_ address: String) async throws -> Answer {
    #expect(address.hasPrefix("http://localhost:8080/auth/callback/google_oauth?"))
    return try await visit(String(address.dropFirst("http://localhost:8080".count)))
  }

  var isSignedIn: Bool { cookies["moongate"] != nil }

  /// The account that it is signed in to.
  func account() async throws -> [String: Any]? {
    let answer = try await client.call(.get, "/api/auth/session", headers: cookieHeader)
    return answer["account"] as? [String: Any]
  }
}

/// A field of an address's query.
func field(_ name: String, of address: String) -> String? {
  URLComponents(string: address)?.queryItems?.first { $0.name == name }?.value
}

/// The same address with a field changed; nil takes it out.
func changing(_ name: String, to value: String?, in address: String) -> String {
  guard var parts = URLComponents(string: address) else { return address }
  parts.queryItems = (parts.queryItems ?? []).compactMap { item in
    item.name == name ? value.map { URLQueryItem(name: name, value: $0) } : item
  }
  return parts.string ?? address
}
