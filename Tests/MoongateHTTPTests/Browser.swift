import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import MoongateAppAPI
import MoongateApps
import MoongateCore
import MoongateHTTP
import MoongateSDK
import MoongateTesting
import NIOCore
import NIOPosix
import PhoneOTP
import Testing

/// The gateway under test; by default with phone codes as its only provider.
struct HTTPGateway: Sendable {
  let gateway: TestGateway
  let application: Application<GatewayResponder>
  let responder: GatewayResponder
  /// What decides about the apps of the generation.
  let apps: Apps
  static let keySet = #"{"keys":[{"kty":"EC"}]}"#

  init(
    providers: [any Provider] = [PhoneOTP()], settings: GatewaySettings = .test(), routes: [Route] = [],
    timeLimit: Duration? = .seconds(10),
    store: (any Store)? = nil, web: any WebClient = UnreachableWeb(), seed: UInt64 = 1, hasAppAPI: Bool = true,
    change: (inout TestGeneration) -> Void = { _ in }
  ) throws {
    var generation = TestGeneration.gateway(for: providers, settings: settings, routes: routes)
    change(&generation)
    gateway = try TestGateway(providers: providers, generation: generation, store: store, seed: seed)
    let appAPI =
      hasAppAPI
      ? AppAPI(
        store: gateway.store, keys: gateway.keys, clock: gateway.clock, audit: gateway.audit,
        providers: gateway.providers, logger: gateway.log.logger) : nil
    apps = Apps(
      store: gateway.store, generations: gateway.generations, providers: gateway.providers, keys: gateway.keys,
      clock: gateway.clock, random: gateway.random,
      signing: SigningKeys(gateway.keys, store: gateway.store, at: gateway.clock.now()), audit: gateway.audit)
    let openID = OpenIDProvider(
      apps: apps, store: gateway.store, keys: gateway.keys, web: web, clock: gateway.clock, random: gateway.random)
    let added: [(any AddedCalls)?] = [appAPI, openID]
    let part = PublicApplication(
      engine: gateway.engine, store: gateway.store, generations: gateway.generations, providers: gateway.providers,
      clock: gateway.clock,
      random: gateway.random, keys: gateway.keys, audit: gateway.audit, keySet: { Self.keySet },
      pages: try PageRenderer(logger: gateway.log.logger, events: appAPI?.events),
      adding: added.compactMap(\.self),
      bodies: BodyReader(timeLimit: timeLimit),
      eventLoops: MultiThreadedEventLoopGroup.singleton, logger: gateway.log.logger)
    application = part.application
    responder = part.responder
  }

  /// Runs a test against the responder, without sockets.
  func run(_ body: @escaping @Sendable (Client) async throws -> Void) async throws {
    try await application.test(.router) { client in
      let description = try await client.execute(uri: "/api/auth/openapi.json", method: .get)
      try await body(
        Client(client: client, gateway: gateway, description: try APIDescription(String(buffer: description.body))))
    }
  }
}

/// Sends a test's requests. It stores no cookies; a `Browser` does.
struct Client: Sendable {
  let client: any TestClientProtocol
  let gateway: TestGateway
  var description: APIDescription?

  func send(_ method: HTTPRequest.Method, _ path: String, headers: [(String, String)] = [], body: String? = nil)
    async throws -> Answer
  {
    var fields = HTTPFields()
    for (name, value) in headers { fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value)) }
    let response = try await client.execute(
      uri: path, method: method, headers: fields, body: body.map { ByteBuffer(string: $0) })
    // Every answer of the API must match openapi.json.
    let faults = description?.faults(
      method.rawValue, path, status: response.status.code, type: response.headers[.contentType],
      body: Data(response.body.readableBytesView))
    #expect(faults ?? [] == [])
    return Answer(response: response)
  }

  /// Calls the API with a JSON body.
  func call(_ method: HTTPRequest.Method, _ path: String, _ json: String? = nil, headers: [(String, String)] = [])
    async throws -> Answer
  {
    try await send(
      method, path, headers: (json == nil ? [] : [("Content-Type", "application/json")]) + headers, body: json)
  }

  /// Registers an account over the API, as an app does, and returns its session token.
  func register(_ phone: String = "+919999999999") async throws -> (token: String, answer: Answer) {
    let flow = try await call(.post, "/api/auth/flows", #"{"flow":"register"}"#)
    let id = try #require(flow["id"] as? String)
    _ = try await call(.post, "/api/auth/flows/\(id)/begin", #"{"provider":"phone_otp","phone":"\#(phone)"}"#)
    let code = try #require(gateway.code(for: phone))
    let done = try await call(.post, "/api/auth/flows/\(id)/submit", #"{"code":"\#(code)"}"#)
    let session = try #require(done["session"] as? [String: Any])
    gateway.clock.advance(by: .seconds(1))
    return (try #require(session["token"] as? String), done)
  }

  /// Begins a flow with the phone number and returns the flow's id.
  func begin(_ flow: String = "login", _ phone: String = "+919999999999", headers: [(String, String)] = []) async throws
    -> String
  {
    let created = try await call(.post, "/api/auth/flows", #"{"flow":"\#(flow)"}"#, headers: headers)
    let id = try #require(created["id"] as? String)
    let begun = try await call(.post, "/api/auth/flows/\(id)/begin", #"{"provider":"phone_otp","phone":"\#(phone)"}"#)
    #expect(begun.status == 200, "\(begun.text)")
    return id
  }
}

/// An answer with accessors for tests.
struct Answer: Sendable {
  let response: TestResponse

  var status: Int { response.status.code }
  var text: String { String(buffer: response.body) }
  var bytes: [UInt8] { Array(response.body.readableBytesView) }

  func header(_ name: String) -> String? { HTTPField.Name(name).flatMap { response.headers[$0] } }

  var setCookies: [String] { response.headers[values: .setCookie] }

  var json: [String: Any] {
    (try? JSONSerialization.jsonObject(with: Data(response.body.readableBytesView)) as? [String: Any]) ?? [:]
  }

  subscript(name: String) -> Any? { json[name] }

  /// The problem's code. Also checks the members and header fields that every problem has.
  func problem(_ location: Testing.SourceLocation = #_sourceLocation) -> String? {
    #expect(header("Content-Type") == "application/problem+json", sourceLocation: location)
    #expect(header("Cache-Control") == "no-store", sourceLocation: location)
    #expect(json["status"] as? Int == status, sourceLocation: location)
    #expect((json["decision_id"] as? String)?.hasPrefix("dc_") ?? false, sourceLocation: location)
    #expect((json["title"] as? String)?.isEmpty == false, sourceLocation: location)
    #expect(
      (json["type"] as? String) == (json["code"] as? String).map { "urn:moongate:problem:\($0)" },
      sourceLocation: location)
    return json["code"] as? String
  }

  var detail: String? { json["detail"] as? String }
}

/// A browser that stores cookies and fills in forms, but follows no redirects.
final class Browser {
  let client: Client
  let origin: String
  /// Extra header fields sent with every visit.
  var metadata: [(String, String)] = []
  private(set) var cookies: [String: String] = [:]
  /// The address of the page it shows.
  private(set) var address = ""
  private(set) var page: Answer?

  init(_ client: Client, origin: String = "http://localhost:8080") {
    self.client = client
    self.origin = origin
  }

  /// A browser that has registered an account and is signed in.
  static func owner(_ client: Client) async throws -> Browser {
    let browser = Browser(client)
    try await browser.visit("/auth/register")
    try await browser.visit(try #require(try await browser.submit(["phone": "9999999999"]).header("Location")))
    _ = try await browser.submit(["code": try #require(client.gateway.code(for: "+919999999999"))])
    #expect(browser.cookies["moongate"] != nil)
    return browser
  }

  var cookieHeader: [(String, String)] {
    cookies.isEmpty
      ? [] : [("Cookie", cookies.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: "; "))]
  }

  @discardableResult
  func visit(_ path: String) async throws -> Answer {
    keep(try await client.send(.get, path, headers: [("Accept", "text/html")] + metadata + cookieHeader), path)
  }

  /// Posts a form and stores the cookies of the answer.
  @discardableResult
  func post(_ path: String, _ fields: [String: String]) async throws -> Answer {
    let body = fields.sorted { $0.key < $1.key }.map { "\($0.key)=\(PercentEncoding.encode($0.value))" }.joined(
      separator: "&")
    let headers =
      [("Accept", "text/html"), ("Origin", origin), ("Content-Type", "application/x-www-form-urlencoded")]
      + cookieHeader
    return keep(try await client.send(.post, path, headers: headers, body: body), path)
  }

  /// Calls the API as a page's script does.
  func call(_ path: String, _ json: String) async throws -> Answer {
    keep(try await client.call(.post, path, json, headers: [("Origin", origin)] + cookieHeader), address)
  }

  /// Submits the page's form that has a field of one of these names, with its hidden fields.
  @discardableResult
  func submit(_ fields: [String: String]) async throws -> Answer {
    let html = try #require(page?.text)
    let form = try #require(
      html.components(separatedBy: "<form ").dropFirst().first { form in
        fields.keys.contains { form.contains("name=\"\($0)\"") }
      })
    var all = fields
    for input in form.components(separatedBy: "<input ").dropFirst() where input.contains("type=\"hidden\"") {
      let name = try #require(Self.attribute("name", input))
      // Scripts fill in some hidden fields; the test passes those.
      if fields[name] == nil { all[name] = Self.attribute("value", input) }
    }
    return try await post(try #require(Self.attribute("action", form)), all)
  }

  /// The address of the page in another language, from its link or from its form's button.
  static func language(_ tag: String, of page: Answer) throws -> String {
    let control = try #require(
      page.text.components(separatedBy: " class=\"link\"").first {
        $0.prefix { $0 != ">" }.contains(" lang=\"\(tag)\"")
      })
    return try #require(attribute("formaction", control) ?? attribute("href", control))
  }

  /// Presses a language's button on a page with a form, with typed input.
  @discardableResult
  func turns(to tag: String, _ typed: [String: String]) async throws -> Answer {
    let shown = try #require(page)
    let form = try #require(
      shown.text.components(separatedBy: "<form id=\"typed\"").dropFirst().first?.components(separatedBy: "</form>")
        .first)
    var all = typed
    for input in form.components(separatedBy: "<input ").dropFirst() where input.contains("type=\"hidden\"") {
      all[try #require(Self.attribute("name", input))] = Self.attribute("value", input)
    }
    return try await post(try Self.language(tag, of: shown), all)
  }

  static func attribute(_ name: String, _ text: String) -> String? {
    guard let start = text.range(of: "\(name)=\"")?.upperBound, let end = text[start...].firstIndex(of: "\"") else {
      return nil
    }
    return text[start..<end].replacingOccurrences(of: "&quot;", with: "\"").replacingOccurrences(of: "&amp;", with: "&")
  }

  private func keep(_ answer: Answer, _ path: String) -> Answer {
    for line in answer.setCookies {
      let pair = line.prefix { $0 != ";" }.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      if line.contains("Max-Age=0") {
        cookies[String(pair[0])] = nil
      } else {
        cookies[String(pair[0])] = String(pair[1])
      }
    }
    address = path
    page = answer
    return answer
  }
}
