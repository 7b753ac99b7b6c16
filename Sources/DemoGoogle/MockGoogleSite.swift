import Foundation
import HTTPTypes
import Hummingbird
import MoongateSDK
import NIOCore

/// The HTTP interface of the provider, served alone or below a path of another server.
package struct MockGoogleSite: Sendable {
  /// The maximum length of a body, in bytes.
  private static let longestBody = 16 * 1024

  private let provider: MockGoogle
  /// The path of the issuer, without a trailing slash.
  private let path: String

  /// - Parameter path: the path of the issuer: `/mock-google`, or empty.
  package init(_ provider: MockGoogle, path: String = "") {
    self.provider = provider
    self.path = path
  }

  /// Responds to any request below `path`.
  package func respond(to request: Request) async -> Response {
    let target = request.head.path ?? "/"
    let whole = String(target.prefix { $0 != "?" })
    let query =
      target.utf8.firstIndex(of: UInt8(ascii: "?")).map { Array(target.utf8[target.utf8.index(after: $0)...]) } ?? []
    guard whole.hasPrefix(path) else {
      return Self.page(MockPages.problem("There is nothing here.", path: path), .notFound)
    }
    let method = request.method == .head ? .get : request.method
    let response: Response
    do {
      switch (method, String(whole.dropFirst(path.count))) {
      case (.get, ""), (.get, "/"): response = try await index(query)
      case (.get, "/style.css"): response = Self.answer("text/css; charset=utf-8", Array(MockPages.stylesheet.utf8))
      case (.get, "/.well-known/openid-configuration"):
        response = try Self.json(await provider.discovery(), isOpen: true)
      case (.get, "/certs"): response = try Self.json(try await provider.signingKeys().published(), isOpen: true)
      case (.get, "/authorize"): response = try await choose(try form(query))
      case (.post, "/authorize"): response = try await decide(try await body(of: request))
      case (.post, "/keys"): response = try await rotate(try await body(of: request))
      case (.post, "/token"): response = try await token(request)
      case (.get, "/userinfo"), (.post, "/userinfo"): response = try await userInfo(request)
      default: response = Self.page(MockPages.problem("There is nothing here.", path: path), .notFound)
      }
    } catch AuthorizationProblem.unsafe(let sentence) {
      return Self.page(MockPages.problem(sentence, path: path), .badRequest)
    } catch AuthorizationProblem.returned(let error, let description, let redirect, let state) {
      return Self.seeOther(provider.back(with: error, description, to: redirect, state: state))
    } catch {
      return Self.page(MockPages.problem("The provider failed: \(error)", path: path), .internalServerError)
    }
    return request.method == .head ? response.createHeadResponse() : response
  }

  // MARK: pages

  private func index(_ query: [UInt8]) async throws -> Response {
    let keys = try await provider.signingKeys()
    return Self.page(
      MockPages.index(
        path: path, accounts: MockAccount.listed, signsWith: keys.id, hasRotated: try form(query)["rotated"] != nil))
  }

  private func choose(_ fields: [String: String]) async throws -> Response {
    let key: String
    if let again = fields["choice"] { key = again } else { key = try await provider.ask(fields) }
    let request = try await provider.choice(key).request
    return Self.page(
      MockPages.choose(
        key: key, path: path, client: request.client, accounts: MockAccount.listed, seen: await provider.seen,
        signsWith: try await provider.signingKeys().id, hasRotated: fields["rotated"] != nil))
  }

  private func decide(_ fields: [String: String]) async throws -> Response {
    let decision: Decision
    let isSlow = fields["slow"] != nil
    switch (fields["action"], fields["account"]) {
    case ("cancel", _): decision = .cancel
    case ("error", _): decision = .fail
    case (_, "other"):
      decision = .other(
        name: fields["name"] ?? "", email: fields["email"] ?? "", isVerified: fields["verified"] != nil,
        hostedDomain: fields["hd"], isSlow: isSlow)
    case (_, let account?): decision = .account(account, isSlow: isSlow)
    default: throw AuthorizationProblem.unsafe("Nothing was chosen. Go back, and choose an account.")
    }
    return Self.seeOther(try await provider.decide(fields["request"], decision))
  }

  private func rotate(_ fields: [String: String]) async throws -> Response {
    try await provider.rotateKeys()
    guard let key = fields["request"] else { return Self.seeOther("\(path)/?rotated=1") }
    return Self.seeOther("\(path)/authorize?" + PercentEncoding.form([("choice", key), ("rotated", "1")]))
  }

  // MARK: client endpoints

  private func token(_ request: Request) async throws -> Response {
    let fields: [String: String]
    do {
      fields = try await body(of: request)
    } catch {
      return try Self.json(TokenProblem.badRequest("the body is not a form, or repeats a field"), .badRequest)
    }
    do {
      return try Self.json(try await provider.redeem(fields, authorization: request.headers[.authorization]))
    } catch let problem as TokenProblem {
      var response = try Self.json(problem, problem == .badClient ? .unauthorized : .badRequest)
      if problem == .badClient { response.headers[.wwwAuthenticate] = "Basic realm=\"mock google\"" }
      return response
    }
  }

  private func userInfo(_ request: Request) async throws -> Response {
    let parts = (request.headers[.authorization] ?? "").split(separator: " ", maxSplits: 1)
    let token = parts.count == 2 && parts[0].lowercased() == "bearer" ? String(parts[1]) : nil
    guard let info = await provider.userInfo(token) else {
      var response = Self.answer("text/plain", [], .unauthorized)
      // RFC 6750 section 3.
      response.headers[.wwwAuthenticate] = token == nil ? "Bearer" : "Bearer error=\"invalid_token\""
      return response
    }
    return try Self.json(info)
  }

  // MARK: request parsing

  /// The fields that have a value.
  private func form(_ bytes: [UInt8]) throws -> [String: String] {
    guard let fields = PercentEncoding.fields(in: bytes) else {
      throw AuthorizationProblem.unsafe("The URL is invalid: a field is repeated or not UTF-8.")
    }
    return fields.filter { !$0.value.isEmpty }
  }

  private func body(of request: Request) async throws -> [String: String] {
    let type = (request.headers[.contentType] ?? "").prefix { $0 != ";" }.lowercased().filter { $0 != " " }
    guard type == "application/x-www-form-urlencoded" else {
      throw AuthorizationProblem.unsafe("The form has an unsupported encoding.")
    }
    return try form(Array(try await request.body.collect(upTo: Self.longestBody).readableBytesView))
  }

  private static func json(_ value: some Encodable, _ status: HTTPResponse.Status = .ok, isOpen: Bool = false) throws
    -> Response
  {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    var response = answer("application/json", Array(try encoder.encode(value)), status)
    if isOpen { response.headers[.cacheControl] = "public, max-age=300" }
    return response
  }

  private static func page(_ html: String, _ status: HTTPResponse.Status = .ok) -> Response {
    var response = answer("text/html; charset=utf-8", Array(html.utf8), status)
    response.headers[.contentSecurityPolicy] =
      "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"
    return response
  }

  private static func seeOther(_ target: String) -> Response {
    var response = answer("text/plain", [], .seeOther)
    response.headers[.location] = target
    return response
  }

  private static func answer(_ type: String, _ bytes: [UInt8], _ status: HTTPResponse.Status = .ok) -> Response {
    let headers: HTTPFields = [.contentType: type, .cacheControl: "no-store", .xContentTypeOptions: "nosniff"]
    return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
  }
}
