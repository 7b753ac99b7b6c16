import Crypto
import Foundation
import OpenID
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import MoongateCore
import MoongateHTTP
import DemoGoogle
import MoongateSDK
import MoongateTesting
import NIOCore
import NIOPosix
import PhoneOTP
import Synchronization
import Testing

/// A gateway with Google and phone codes, and a mock of Google that it reaches without a socket.
struct GoogleWorld: Sendable {
  static let issuer = "https://google.test"
  static let callback = "http://localhost:8080/auth/callback/google_oauth"
  static let asha = "100000000000000000001"
  /// The redirect URI of the app `mobile`.
  static let appAddress = "https://app.example.com/signed-in?from=google"

  let gateway: TestGateway
  let google: MockWeb
  private let application: Application<GatewayResponder>

  init(change: (inout TestGeneration) -> Void = { _ in }) throws {
    let providers: [any Provider] = [PhoneOTP(), OpenID()]
    let name: ProviderName = "google_oauth"
    var settings = GatewaySettings.test()
    // Codes never go to these hosts.
    settings.redirectHosts = ["app.example.com"]
    var generation = TestGeneration.gateway(for: providers, settings: settings)
    generation.gateway.providers[name] = ProviderSettings(
      texts: ["issuer": Self.issuer, "client_id": "client"], secrets: ["client_secret": SecretText("s3cret")],
      values: ["trusted_domains": ["gmail.com"]])
    generation.policies[name] = .test(
      name, limits: [.test("verify_flow", on: .verify, per: .flow, max: 5, window: .seconds(900))])
    generation.apps = AppTable(
      [
        App(
          id: "mobile", name: "Mobile & <b>Co</b>", redirectURIs: [try RedirectURI(Self.appAddress)], consent: .once)
      ], own: settings.publicURL)
    change(&generation)
    google = MockWeb()
    gateway = try TestGateway(providers: providers, generation: generation, web: google)
    google.use(gateway.clock)
    application =
      PublicApplication(
        engine: gateway.engine, store: gateway.store, generations: gateway.generations, providers: gateway.providers,
        clock: gateway.clock,
        random: gateway.random, keys: gateway.keys, audit: gateway.audit, keySet: { "{}" },
        pages: try PageRenderer(logger: gateway.log.logger),
        eventLoops: MultiThreadedEventLoopGroup.singleton, logger: gateway.log.logger
      ).application
  }

  func run(_ body: @escaping @Sendable (Client) async throws -> Void) async throws {
    try await application.test(.router) { client in try await body(Client(client: client, gateway: gateway)) }
  }
}

/// The mock of Google: the gateway's web client, and the site a person's browser opens.
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

  /// Opens an address at Google and submits the form with these fields.
  /// - Returns: The address Google redirects to.
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

/// The gateway's clock, set after the web client that needs it has been created.
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
  /// Presses "Continue with Google" on a page.
  /// - Returns: The address at Google.
  func continuesWithGoogle(_ path: String = "/auth/login", returnTo: String? = nil) async throws -> String {
    try await visit(path + (returnTo.map { "?return_to=" + PercentEncoding.encode($0) } ?? ""))
    #expect(page?.text.contains("Continue with Google") == true)
    let answer = try await submit(["provider": "google_oauth"])
    #expect(answer.status == 200, "\(answer.text)")
    return try #require(Self.address(on: answer))
  }

  /// The address to which the intermediate page redirects.
  static func address(on answer: Answer) -> String? {
    answer.text.firstRange(of: "content=\"0; url=").map { start in
      String(answer.text[start.upperBound...].prefix { $0 != "\"" }).replacing("&amp;", with: "&").replacing(
        "&#x3D;", with: "="
      ).replacing(
        "&#61;", with: "=")
    }
  }

  /// Opens the callback as Google's redirect does.
  func returns(_ address: String) async throws -> Answer {
    #expect(address.hasPrefix("http://localhost:8080/auth/callback/google_oauth?"))
    return try await visit(String(address.dropFirst("http://localhost:8080".count)))
  }

  var isSignedIn: Bool { cookies["moongate"] != nil }

  /// The account the browser is signed in to.
  func account() async throws -> [String: Any]? {
    let answer = try await client.call(.get, "/api/auth/session", headers: cookieHeader)
    return answer["account"] as? [String: Any]
  }
}

/// A parameter in the query of an address.
func field(_ name: String, of address: String) -> String? {
  URLComponents(string: address)?.queryItems?.first { $0.name == name }?.value
}

/// The address with one parameter changed, or removed if the value is nil.
func changing(_ name: String, to value: String?, in address: String) -> String {
  guard var parts = URLComponents(string: address) else { return address }
  parts.queryItems = (parts.queryItems ?? []).compactMap { item in
    item.name == name ? value.map { URLQueryItem(name: name, value: $0) } : item
  }
  return parts.string ?? address
}
