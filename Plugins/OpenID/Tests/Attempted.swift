import Foundation
import OpenID
import MoongateSDK
import Synchronization
import Testing

/// One step of the provider under test, from the redirect to the result.
struct Attempted {
  let plugin: OpenID
  let web: TestProvider
  let redirect: String
  let state: [UInt8]
  /// The reasons that the provider adds to decisions.
  let reasons = Reasons()
  var now = TestProvider.now
  var settings = Attempted.settings()
  /// The function `identity` of the policy.
  var identity = IdentityMapper()

  static let callback = Callback(address: "http://localhost:8080/auth/callback/google_oauth", state: "st_abc")

  static func settings(
    issuer: String? = TestProvider.issuer, apps: String? = nil, _ values: [String: SettingValue] = [:]
  ) -> StepSettings {
    var texts = ["client_id": "client"]
    texts["issuer"] = issuer
    texts["apps"] = apps
    return StepSettings(texts: texts, secrets: ["client_secret": { "s3cret/+ ä" }], values: values)
  }

  /// Begins a step.
  static func begun(
    _ web: TestProvider, plugin: OpenID = OpenID(), settings: StepSettings = settings(),
    now: Int64 = TestProvider.now
  ) async throws -> Attempted {
    let context = context(web, settings, state: [], now: now)
    guard
      case .redirect(let address, let state) = try await plugin.begin(
        context, ProviderInput(fields: [:], defaultRegion: "IN"))
    else {
      throw Unexpected()
    }
    return Attempted(plugin: plugin, web: web, redirect: address, state: state, now: now, settings: settings)
  }

  static func context(
    _ web: TestProvider, _ settings: StepSettings, state: [UInt8], now: Int64, callback: Callback? = callback,
    reasons: Reasons = Reasons(), identity: IdentityMapper = IdentityMapper(), flowPurpose: FlowPurposeKind? = nil
  ) -> StepContext {
    StepContext(
      flow: "login", flowPurpose: flowPurpose, purpose: .prove, account: nil, identifier: nil, state: state, now: now,
      callback: callback,
      tools: StepTools(
        randomBytes: { count in (0..<count).map { _ in UInt8.random(in: 0...255) } }, settings: settings, web: web,
        log: StepLog(explaining: { reasons.add($0) }) { _, sentence, _ in reasons.add(sentence) },
        identity: identity))
  }

  /// A parameter of the redirect URL.
  subscript(name: String) -> String? {
    URLComponents(string: redirect)?.queryItems?.first { $0.name == name }?.value
  }

  /// The claims of a valid token for this step.
  func claims(_ changes: [String: Any?] = [:]) throws -> [String: Any] {
    let seconds = Double(now) / 1000
    var claims: [String: Any] = [
      "iss": TestProvider.issuer, "aud": "client", "sub": "42", "iat": seconds, "exp": seconds + 3600,
      "nonce": try #require(self["nonce"]),
      "email": "Asha@Example.com", "email_verified": true, "given_name": "Asha", "family_name": "Rao",
    ]
    for (name, value) in changes { claims[name] = value }
    return claims
  }

  /// Submits the fields of a callback.
  func submit(_ fields: [String: String]) async throws -> StepAnswer {
    let context = Self.context(web, settings, state: state, now: now, reasons: reasons, identity: identity)
    let input = ProviderInput(fields: fields.mapValues { .text($0) }, defaultRegion: "IN")
    try plugin.check(context, input)
    return try await plugin.submit(context, input)
  }

  /// Submits a code that the provider redeems for this token.
  func returns(_ token: String, with fields: [String: String] = [:]) async throws -> StepAnswer {
    web.change { $0.idToken = token }
    return try await submit(["code": "c0de", "state": Self.callback.state].merging(fields) { $1 })
  }

  /// Submits a token directly, like an app.
  func brings(_ token: String) async throws -> StepAnswer { try await submit(["id_token": token]) }
}

/// What a provider tells operators: log lines, and reasons of decisions.
final class Reasons: Sendable {
  private let told = Mutex<[String]>([])

  func add(_ text: String) { told.withLock { $0.append(text) } }

  /// What was told since the last call.
  func take() -> [String] {
    told.withLock { told in
      defer { told = [] }
      return told
    }
  }
}

struct Unexpected: Error {}

extension StepAnswer {
  var proof: Proof? { if case .proved(let proof) = self { proof } else { nil } }
  var reason: RefusalReason? { if case .refused(let reason) = self { reason } else { nil } }
}
