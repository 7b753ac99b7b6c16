import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

extension Exchange {
  /// The request, as `Apps` judges it.
  var appCall: AppCall {
    AppCall(
      generation: generation,
      client: ClientFacts(
        address: client.address, userAgent: request.headers[.userAgent], isNewDevice: false,
        place: generation.gateway.place(of: client.address)),
      decision: decision)
  }
}

/// Where a signed-in user does what an app requires.
struct SignInRedirects: Sendable {
  let driver: FlowDriver

  /// The page on which the session can meet the requirement; nil if no step can.
  /// - Parameter returnTo: where the page leads back.
  func address(
    meeting verdict: AppVerdict, in session: SessionSnapshot, returnTo: String, _ exchange: Exchange
  ) async throws(Refusal) -> String? {
    switch verdict {
    case .needsFactors: return try await address(ofAnotherFactorIn: session, returnTo: returnTo, exchange)
    case .judged(.noSession): return FormFields.address(PagePath.signIn, ["return_to": returnTo])
    case .judged(.emailNotVerified):
      return FormFields.address(exchange.providers.verificationPage(in: exchange.generation), ["return_to": returnTo])
    case .judged(.needs(let provider)): return address(of: provider, returnTo: returnTo, exchange)
    case .judged(.pass), .judged(.notInGroup), .judged(.tooNew), .judged(.denied), .judged(.failed): return nil
    }
  }

  /// The page on which the session passes a factor that it has not passed; nil if the account can pass none. A factor
  /// that is too new would not count if it was passed again.
  /// - Parameter setsUp: whether the user may have to set the factor up first.
  func address(
    ofAnotherFactorIn session: SessionSnapshot, setsUp: Bool = true, returnTo: String, _ exchange: Exchange
  ) async throws(Refusal) -> String? {
    let flow = exchange.generation.flowName(for: .stepUp)
    guard case .success(let offered) = await driver.engine.offers(flow, client: try await driver.caller(exchange))
    else { return nil }
    let now = driver.engine.now
    let passed = Set(session.session.passed.filter { $0.tooNewUntil.map { now < $0 } ?? true }.map(\.provider))
    let others = offered.filter { name in
      !passed.contains(name) && (setsUp || Self.canPass(name, session.account, exchange))
    }
    guard let first = others.first else { return nil }
    if others.count == 1 { return address(of: first, returnTo: returnTo, exchange) }
    return FormFields.address(PagePath.step, ["flow": flow, "return_to": returnTo])
  }

  /// Whether the account has what the provider proves.
  private static func canPass(_ name: ProviderName, _ account: Account, _ exchange: Exchange) -> Bool {
    guard let descriptor = exchange.providers[name]?.descriptor else { return false }
    if account.credentials.contains(name) { return true }
    let isSetUp = descriptor.hashesSecrets || exchange.generation.flow(for: .factor(name, .set)) != nil
    return !isSetUp && descriptor.identifierKinds.contains { account.identifier($0)?.verifiedAt != nil }
  }

  private func address(of provider: ProviderName, returnTo: String, _ exchange: Exchange) -> String {
    let page = exchange.providers.stepPage(of: provider)
    return FormFields.address(
      page,
      [
        "flow": exchange.generation.flowName(for: .stepUp), "with": page == PagePath.step ? provider.rawValue : nil,
        "return_to": returnTo,
      ])
  }

  /// The refusal of a session that cannot meet the requirement. Records it.
  func refusal(
    _ verdict: AppVerdict, by apps: Apps, of app: App, in session: SessionSnapshot, _ exchange: Exchange
  ) -> Refusal {
    let decision = apps.refused(app, verdict, account: session.account.id, exchange.appCall)
    switch verdict {
    case .judged(.notInGroup(let groups)): return Refusal(.forbidden, decision: decision, groups: groups)
    case .judged(.denied(let reason)): return Refusal(.policyReason(reason), decision: decision)
    case .judged(.failed): return Refusal(.policyError, decision: decision)
    case .judged(.tooNew(let provider, let until)):
      let wait = until - apps.clock.now()
      return Refusal(.identifierTooNew, decision: decision, retryAfter: wait, provider: provider)
    case .needsFactors:
      guard let step = session.session.nextCounting(at: apps.clock.now()), let until = step.tooNewUntil else {
        return Refusal(.stepUpRequired, decision: decision)
      }
      let wait = until - apps.clock.now()
      return Refusal(.identifierTooNew, decision: decision, retryAfter: wait, provider: step.provider)
    case .judged(.emailNotVerified): return Refusal(.emailNotVerified, decision: decision)
    case .judged(.needs), .judged(.noSession), .judged(.pass): return Refusal(.stepUpRequired, decision: decision)
    }
  }
}

extension Session {
  /// The step by something too new that can be passed again first; nil if nothing is too new.
  fileprivate func nextCounting(at now: Timestamp) -> PassedStep? {
    passed.filter { $0.tooNewUntil.map { now < $0 } ?? false }.min { a, b in
      (a.tooNewUntil ?? now) < (b.tooNewUntil ?? now)
    }
  }
}
