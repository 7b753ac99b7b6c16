import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// What tokens say, and how apps give them up: userinfo (OpenID Connect Core 1.0 section 5.3), introspection (RFC 7662)
/// and revocation (RFC 7009).
struct TokenInspection: Sendable {
  let clients: ClientEndpoints
  let apps: Apps
  let keys: KeyRing

  var endpoints: [Endpoint] {
    [
      Endpoint(.inbound, .get, OpenIDPath.userInfo) { exchange throws(Refusal) in
        await userInfo(exchange) { () throws(AppFault) in nil }
      },
      Endpoint(.inbound, .post, OpenIDPath.userInfo) { exchange throws(Refusal) in
        await userInfo(exchange) { () async throws(AppFault) in
          // Without a token in Authorization, a form has it.
          exchange.request.headers[.contentType] == nil ? nil : try await exchange.appForm()["access_token"]
        }
      },
      clients.endpoint(OpenIDPath.introspect) { request throws(AppFault) in try await introspect(request) },
      clients.endpoint(OpenIDPath.revoke) { request throws(AppFault) in
        try await apps.revoke(try request.required("token"), by: request.app, request.exchange.appCall)
        // The same answer for every token, so that it does not tell whether there is one.
        return .nothingFound
      },
    ]
  }

  // MARK: - Userinfo

  /// - Parameter sent: reads the token in the body; nil: it has none.
  private func userInfo(_ exchange: Exchange, _ sent: () async throws(AppFault) -> String?) async -> Response {
    do throws(AppFault) {
      let token = try Self.token(exchange, try await sent())
      let granted = try await apps.live(access: token, exchange.appCall)
      guard granted.scopes.contains(AppScope.openID), granted.live.account != nil else {
        throw .oauth(OAuthError("insufficient_scope", "the token has no scope openid", status: 403))
      }
      let claims: [AppClaim]
      do throws(PolicyFault) {
        claims = try apps.claims(of: granted, exchange.appCall)
      } catch {
        throw .policy(error)
      }
      return .json(.object(claims.map { JSONMember(name: $0.name, value: JSONValue($0.value)) }))
    } catch {
      return Self.refused(error, exchange)
    }
  }

  /// The token of a request: in `Authorization` or in a form, never in the address, which is logged on its way (RFC
  /// 6750 section 2, RFC 9700 section 4.3.2).
  private static func token(_ exchange: Exchange, _ sent: String?) throws(AppFault) -> String {
    let query: FormFields
    do throws(Refusal) { query = try exchange.query() } catch { throw .oauth(ambiguous) }
    guard query["access_token"] == nil else { throw .oauth(ambiguous) }
    let lines = exchange.request.headers[values: .authorization]
    guard lines.count + (sent == nil ? 0 : 1) <= 1 else { throw .oauth(ambiguous) }
    if let sent { return sent }
    let parts = lines.first?.split(separator: " ", maxSplits: 1) ?? []
    guard parts.count == 2, parts[0].lowercased() == "bearer" else {
      throw .oauth(OAuthError("", "", status: 401))
    }
    return String(parts[1].drop { $0 == " " })
  }

  private static let ambiguous = OAuthError("invalid_request", "send one token, in Authorization or in a form")

  /// An error with the challenge of RFC 6750 section 3. A request without a token gets no error code.
  private static func refused(_ fault: AppFault, _ exchange: Exchange) -> Response {
    var response = Response.oauth(fault, exchange)
    guard case .oauth(let error) = fault else { return response }
    if error.code.isEmpty { response = .nothing }
    response.status = error.code.isEmpty ? .unauthorized : response.status
    let realm = "Bearer realm=\"\(exchange.gateway.publicURL.host)\""
    response.headers[.wwwAuthenticate] =
      error.code.isEmpty ? realm : "\(realm), error=\"\(error.code)\", error_description=\"\(error.description)\""
    return response
  }

  // MARK: - Introspection

  /// Attack: an app, or somebody with its secret, finds out what the tokens of other apps are worth. Tokens of others
  /// are not active.
  private func introspect(_ request: ClientRequest) async throws(AppFault) -> Response {
    guard request.app.authentication != .none else {
      throw .oauth(OAuthError("invalid_client", "a public app cannot introspect", status: 401))
    }
    let token = try request.required("token")
    let (app, exchange) = (request.app, request.exchange)
    do throws(AppFault) {
      let granted = try await apps.live(access: token, exchange.appCall)
      guard granted.app.id == app.id else { return Self.inactive }
      let grant = granted.live.grant
      return .json(
        .object(
          members(of: grant, granted.scopes, "Bearer", exchange) + [
            JSONMember(name: "iat", value: .number("\(granted.issuedAt.seconds)")),
            JSONMember(name: "exp", value: .number("\(granted.expiresAt.seconds)")),
          ]))
    } catch {
      // A store or a policy that fails must not make a token look inactive for ever.
      guard case .oauth = error else { throw error }
    }
    guard let live = try await apps.live(refresh: token, by: app, exchange.appCall) else { return Self.inactive }
    return .json(
      .object(
        members(of: live.grant, live.grant.scopes, "refresh_token", exchange) + [
          JSONMember(name: "exp", value: .number("\(live.grant.expiresAt.seconds)"))
        ]))
  }

  private static let inactive = Response.json(.members(["active": .flag(false)]))

  private func members(of grant: AppGrant, _ scopes: [String], _ type: String, _ exchange: Exchange) -> [JSONMember] {
    let app = exchange.generation.apps[grant.app]
    let subject = grant.account.flatMap { account in app?.subject(of: account, keys: keys) } ?? grant.app
    let members: KeyValuePairs<String, JSONValue> = [
      "active": .flag(true), "scope": .text(scopes.joined(separator: " ")), "client_id": .text(grant.app),
      "token_type": .text(type), "sub": .text(subject),
      "iss": .text(exchange.gateway.publicURL.description),
    ]
    return members.map { JSONMember(name: $0.key, value: $0.value) }
  }
}

extension Response {
  /// 200 without content (RFC 7009 section 2.2).
  fileprivate static var nothingFound: Response {
    var response = Response.nothing
    response.status = .ok
    return response
  }
}

extension JSONValue {
  /// - Parameter claim: what a rule says about a user.
  init(_ claim: JSONClaim) {
    switch claim {
    case .null: self = .null
    case .flag(let flag): self = .flag(flag)
    case .number(let number): self = number.isFinite ? .number(claim.wholeNumber ?? "\(number)") : .null
    case .integer(let digits): self = .number(digits)
    case .text(let text): self = .text(text)
    case .list(let list): self = .list(list.map { JSONValue($0) })
    case .object(let members):
      self = .object(members.sorted { $0.key < $1.key }.map { JSONMember(name: $0.key, value: JSONValue($0.value)) })
    }
  }
}
