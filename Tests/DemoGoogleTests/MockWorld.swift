import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import DemoGoogle
import NIOCore
import Synchronization

/// A mock provider with one client, and the way to ask it things without a socket.
final class MockWorld: Sendable {
  let now = Mutex<Int64>(1_800_000_000_000)
  let slept = Mutex<Duration>(.zero)
  let site: Mutex<MockGoogleSite?> = Mutex(nil)
  static let redirect = "http://localhost:8080/auth/callback/google_oauth"
  static let verifier = String(repeating: "a", count: 43)

  init() {
    let client = MockGoogle.Client(id: "client", secret: "s3cret", redirects: [Self.redirect])
    let provider = MockGoogle(
      issuer: "http://localhost:9400", clients: { [client] }, now: { [unowned self] in now.withLock { $0 } },
      random: { count in (0..<count).map { _ in UInt8.random(in: 0...255) } },
      sleep: { [unowned self] length in slept.withLock { $0 = length } })
    site.withLock { $0 = MockGoogleSite(provider) }
  }

  struct Answer {
    let response: Response
    let text: String

    var status: Int { response.status.code }
    var json: [String: Any] { (try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]) ?? [:] }
    subscript(name: String) -> String? { json[name] as? String }
    func header(_ name: HTTPField.Name) -> String? { response.headers[name] }
  }

  func send(_ method: HTTPRequest.Method, _ path: String, _ headers: HTTPFields = [:], _ body: String = "") async throws
    -> Answer
  {
    let head = HTTPRequest(
      method: method, scheme: "http", authority: "localhost:9400", path: path, headerFields: headers)
    guard let site = site.withLock({ $0 }) else { return Answer(response: Response(status: .badGateway), text: "") }
    let response = await site.respond(to: Request(head: head, body: RequestBody(buffer: ByteBuffer(string: body))))
    let collector = Collector()
    try await response.body.write(collector)
    return Answer(response: response, text: collector.text)
  }

  func get(_ path: String, _ headers: HTTPFields = [:]) async throws -> Answer { try await send(.get, path, headers) }

  func post(_ path: String, _ fields: [String: String?], _ headers: HTTPFields = [:]) async throws -> Answer {
    var headers = headers
    headers[.contentType] = "application/x-www-form-urlencoded"
    return try await send(.post, path, headers, Self.form(fields))
  }

  /// Asks for the page of accounts.
  func authorize(_ changes: [String: String]) async throws -> Answer {
    let challenge = Data(SHA256.hash(data: Data(Self.verifier.utf8))).base64EncodedString()
      .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    let fields: [String: String?] = [
      "client_id": "client", "redirect_uri": Self.redirect, "response_type": "code", "scope": "openid email profile",
      "state": "st&te",
      "nonce": "n0nce",
      "code_challenge": challenge, "code_challenge_method": "S256",
    ]
    return try await get("/authorize?" + Self.form(fields.merging(changes) { $1 }))
  }

  /// What the page of accounts is remembered by.
  func choice() async throws -> String {
    let page = try await authorize([:]).text
    guard let start = page.firstRange(of: "name=\"request\" value=\"") else { throw NoPage() }
    return String(page[start.upperBound...].prefix { $0 != "\"" })
  }

  /// A code for the first account.
  func code() async throws -> String {
    guard
      let code = Self.code(
        try await post("/authorize", ["request": try await choice(), "account": "100000000000000000001"]))
    else {
      throw NoPage()
    }
    return code
  }

  func redeem(_ code: String, _ changes: [String: String?] = [:], _ headers: HTTPFields = [:]) async throws -> Answer {
    let fields: [String: String?] = [
      "grant_type": "authorization_code", "code": code, "redirect_uri": Self.redirect, "code_verifier": Self.verifier,
      "client_id": "client",
      "client_secret": "s3cret",
    ]
    return try await post("/token", fields.merging(changes) { $1 }, headers)
  }

  static func code(_ answer: Answer) -> String? {
    answer.header(.location).flatMap(URLComponents.init(string:))?.queryItems?.first { $0.name == "code" }?.value
  }

  static func claims(_ token: String) -> [String: Any]? { part(token, 1) }
  static func header(_ token: String) -> [String: Any] { part(token, 0) ?? [:] }

  private static func part(_ token: String, _ index: Int) -> [String: Any]? {
    let text = String(token.split(separator: ".")[index]).replacing("-", with: "+").replacing("_", with: "/")
    let padded = text + String(repeating: "=", count: (4 - text.count % 4) % 4)
    return Data(base64Encoded: padded).flatMap { try? JSONSerialization.jsonObject(with: $0) as? [String: Any] }
  }

  private static func form(_ fields: [String: String?]) -> String {
    let safe = CharacterSet.alphanumerics
    return fields.compactMap { name, value in
      value?.addingPercentEncoding(withAllowedCharacters: safe).map { "\(name)=\($0)" }
    }.joined(
      separator: "&")
  }
}

struct NoPage: Error {}

/// Keeps what a response writes.
final class Collector: ResponseBodyWriter {
  private(set) var bytes: [UInt8] = []

  var text: String { String(decoding: bytes, as: UTF8.self) }

  func write(_ buffer: ByteBuffer) async throws { bytes += buffer.readableBytesView }
  func finish(_ trailingHeaders: HTTPFields?) async throws {}
}
