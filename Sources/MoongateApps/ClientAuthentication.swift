import Foundation
import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// How a request says which app sends it (RFC 6749 section 2.3).
enum ClientCredentials: Equatable, Sendable {
  /// `client_secret_basic` or `client_secret_post`: what the text can mean.
  case secret(id: String, [SecretText])
  /// `private_key_jwt` (RFC 7523). The id is that of `client_id`, if it is there.
  case assertion(id: String?, String)
  /// `none`.
  case id(String)

  private static let assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

  /// - Parameter authorizations: the values of `Authorization`.
  /// - Throws: if there are none, or several. Attack: two programs on the way choose different ones.
  init(_ fields: FormFields, authorizations: [String]) throws(OAuthError) {
    // An empty secret is one that is left out (RFC 6749 section 2.3.1).
    let secret = fields["client_secret"]
    let isAsserted = fields.names.contains("client_assertion") || fields.names.contains("client_assertion_type")
    guard authorizations.count + (secret == nil ? 0 : 1) + (isAsserted ? 1 : 0) <= 1 else {
      throw OAuthError("invalid_request", "use one way of client authentication")
    }
    let id = fields["client_id"]
    if let authorization = authorizations.first {
      let basic = try Self.basic(authorization)
      guard id == nil || id == basic.id else { throw OAuthError("invalid_request", "client_id differs") }
      self = basic.secrets.isEmpty ? .id(basic.id) : .secret(id: basic.id, basic.secrets)
    } else if isAsserted {
      guard fields["client_assertion_type"] == Self.assertionType, let assertion = fields["client_assertion"] else {
        throw OAuthError("invalid_request", "client_assertion or its type is wrong")
      }
      self = .assertion(id: id, assertion)
    } else {
      guard let id else { throw OAuthError("invalid_client", "the app does not say which one it is", status: 401) }
      self = secret.map { Self.secret(id: id, [SecretText($0)]) } ?? .id(id)
    }
  }

  /// Reads `Basic`, in which the id and the secret are encoded as in a form (RFC 6749 section 2.3.1). Many apps send
  /// their secret as it is, so both are tried.
  private static func basic(_ authorization: String) throws(OAuthError) -> (id: String, secrets: [SecretText]) {
    let parts = authorization.split(separator: " ", maxSplits: 1)
    let encoded = parts.count == 2 ? String(parts[1].drop { $0 == " " }) : ""
    guard parts.count == 2, parts[0].lowercased() == "basic",
      let data = Data(base64Encoded: encoded), data.base64EncodedString() == encoded,
      let colon = data.firstIndex(of: UInt8(ascii: ":")), let id = PercentEncoding.decode(data[..<colon]),
      let raw = String(bytes: data[(colon + 1)...], encoding: .utf8)
    else {
      throw OAuthError("invalid_client", "Authorization cannot be read as Basic", status: 401)
    }
    let decoded = PercentEncoding.decode(raw.utf8)
    return (id, Set([raw, decoded ?? raw]).subtracting([""]).map { SecretText($0) })
  }
}

/// Finds the app that sends a request, and verifies that it is the one.
struct ClientAuthentication: Sendable {
  let failures: FailedTokenLimiter
  let assertions: ClientAssertions

  /// What attempts at apps that do not exist are counted by. No app has this ID.
  ///
  /// Attack: somebody shares an address with users of access tokens, and makes up apps until their tokens are refused
  /// on all routes.
  private static let unknown = "(unknown app)"
  private static let wrong = OAuthError("invalid_client", "the app or its credentials are not known", status: 401)

  /// - Throws: `invalid_client` for an unknown app, a wrong secret, and an app that must authenticate in another way.
  ///   Their answers are alike.
  func app(_ fields: FormFields, _ exchange: Exchange) async throws(AppFault) -> App {
    let credentials: ClientCredentials
    do throws(OAuthError) {
      credentials = try ClientCredentials(fields, authorizations: exchange.request.headers[values: .authorization])
    } catch {
      throw .oauth(error)
    }
    let table = exchange.generation.apps
    switch credentials {
    case .id(let id):
      // Attack: made-up codes of a public app, which are counted when they are redeemed.
      return try await guarded(table[id], exchange) { app throws(AppFault) in app.authentication == .none }
    case .secret(let id, let secrets):
      return try await guarded(table[id], exchange) { app throws(AppFault) in
        secrets.map { app.authentication.accepts($0.reveal()) }.contains(true)
      }
    case .assertion(let id, let text):
      let assertion = ClientAssertion(text)
      let named = assertion?.subject
      guard id == nil || id == named else { throw .oauth(Self.wrong) }
      return try await guarded(named.flatMap { table[$0] }, exchange) { app throws(AppFault) in
        guard let assertion else { return false }
        return try await assertions.accept(assertion, of: app, exchange)
      }
    }
  }

  /// Verifies the credentials of an app, unless too many wrong ones have come from the address for this app.
  ///
  /// Attack: others lock an app out with wrong secrets. Attempts count for an address and an app together.
  private func guarded(
    _ app: App?, _ exchange: Exchange, _ isRight: (App) async throws(AppFault) -> Bool
  ) async throws(AppFault) -> App {
    let (address, client) = (exchange.client.address, app?.id ?? Self.unknown)
    let until: Timestamp?
    do throws(StoreFault) { until = try await failures.lockedUntil(address, client: client) } catch {
      throw .store(error)
    }
    if let until {
      var error = OAuthError("temporarily_unavailable", "too many wrong credentials from this address", status: 429)
      error.retryAfter = until - assertions.clock.now()
      throw .oauth(error)
    }
    if let app, try await isRight(app) { return app }
    do throws(StoreFault) { _ = try await failures.charge(address, client: client) } catch { throw .store(error) }
    exchange.log(exchange.refusal(.unauthenticated, reason: "\(client) did not authenticate itself"))
    throw .oauth(Self.wrong)
  }
}
