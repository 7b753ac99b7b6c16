import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// `/auth/openid/continue?request=…`: continues an authorization after a sign-in, a step-up or an agreement, and judges
/// everything anew. The request is sealed in the address, so nothing is stored before a code is redeemed.
///
/// Attack: login CSRF. An attacker begins an authorization, and a victim's browser continues it. The request is sealed
/// for the browser that began it.
struct AppContinuation: Sendable {
  let apps: Apps
  let driver: FlowDriver
  let pages: PageRenderer
  let answers: AuthorizationAnswers
  let keys: KeyRing

  private static let denied = OAuthError("access_denied", "the user did not continue")

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, PagePath.appContinuation) { exchange throws(Refusal) in
        // A HEAD request must not make a code.
        guard exchange.request.method == .get else { throw exchange.refusal(.methodNotAllowed) }
        let query = try exchange.query()
        guard let text = query["request"], let request = keys.authorizationRequest(text, at: apps.clock.now()) else {
          throw exchange.refusal(.flowExpired, reason: "the request of an app is forged or too old")
        }
        guard let own = exchange.credentials.browserHash, let browser = request.browser,
          constantTimeEquals(own.bytes, browser.bytes)
        else {
          throw exchange.refusal(.flowNotFound, reason: "another browser has begun the request of an app")
        }
        let table = exchange.generation.apps
        guard let app = table[request.grant.client], app.grants.contains(.authorizationCode),
          table.receives(app, at: request.grant.redirect)
        else {
          throw exchange.refusal(.flowNotFound, reason: "the app of a request is not registered any more")
        }
        if query["cancel"] != nil {
          return answers.send(Self.denied, to: AnswerTarget(request, of: app), at: exchange.request.head.path, exchange)
        }
        return try await proceed(request, app, wasAsked: query["asked"] != nil, exchange)
      }
    ]
  }

  /// Does what the request needs next.
  /// - Parameter wasAsked: whether the user has been asked for the level that the app would like.
  func proceed(
    _ request: AuthorizationRequest, _ app: App, wasAsked: Bool = false, _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    let target = AnswerTarget(request, of: app)
    exchange.shown.show(target.receiver)
    let here: String
    do {
      here = FormFields.address(PagePath.appContinuation, ["request": try keys.sealed(request)])
    } catch let error as OAuthError {
      return answers.send(error, to: target, exchange)
    } catch {
      throw exchange.refusal(.policyError, fault: "the request of an app cannot be sealed: \(error)")
    }
    let session = try await driver.session(exchange)
    let step = try await exchange.mappingFaults { () async throws(StoreFault) in
      try await apps.next(request, app, in: session, exchange.appCall)
    }
    if request.prompt.contains("none"), let error = step.silentError {
      if case .refuse(_, let verdict?) = step {
        apps.refused(app, verdict, account: session?.account.id, exchange.appCall)
      }
      return answers.send(error, to: target, at: here, exchange)
    }
    guard let session else { return signIn(request, again: false, here, exchange) }
    switch step {
    case .signIn: return signIn(request, again: true, here, exchange)
    case .stepUp(let verdict):
      let redirects = SignInRedirects(driver: driver)
      guard let address = try await redirects.address(meeting: verdict, in: session, returnTo: here, exchange) else {
        return refuse(verdict, target, in: session, here, exchange)
      }
      return exchange.redirect(to: localized(address, request, exchange))
    case .refuse(_, let verdict?): return refuse(verdict, target, in: session, here, exchange)
    case .refuse(let error, nil): return answers.send(error, to: target, at: here, exchange)
    case .consent where request.agreed == nil || request.agreed != session.account.id:
      let address = here.replacing(PagePath.appContinuation, with: PagePath.appConsent)
      return exchange.redirect(to: localized(address, request, exchange))
    case .consent, .ready: break
    }
    if !wasAsked, let address = try await wishedStepUp(request, in: session, here, exchange) {
      return exchange.redirect(to: localized(address, request, exchange))
    }
    do throws(AppFault) {
      let code = try await apps.authorize(
        request, app, in: session, agreed: request.agreed == session.account.id, exchange.appCall)
      return answers.send(code: code, to: target, at: here, exchange)
    } catch {
      switch error {
      case .oauth(let error): return answers.send(error, to: target, at: here, exchange)
      case .store(let fault): throw exchange.refusal(.storeUnavailable, fault: fault.description)
      case .policy(let fault): throw exchange.refusal(.policyError, fault: fault.description)
      }
    }
  }

  /// The page that says why the app gets nothing. Its link takes the error there.
  private func refuse(
    _ verdict: AppVerdict, _ target: AnswerTarget, in session: SessionSnapshot, _ here: String, _ exchange: Exchange
  ) -> Response {
    let refusal = SignInRedirects(driver: driver).refusal(verdict, by: apps, of: target.app, in: session, exchange)
    return pages.refusedApp(refusal, app: target.receiver, back: here + "&cancel=1", at: here, exchange)
  }

  /// The page on which the session reaches the level that the app would like first (`acr_values`), if the account has
  /// what it needs. An `acr` that is not essential never refuses anybody (OpenID Connect Core 1.0 section 5.5.1.1), so
  /// the user is asked once, and "Cancel" leads on.
  private func wishedStepUp(
    _ request: AuthorizationRequest, in session: SessionSnapshot, _ here: String, _ exchange: Exchange
  ) async throws(Refusal) -> String? {
    guard !request.prompt.contains("none"), let level = request.acrValues.lazy.compactMap(AppSignIn.level(of:)).first,
      session.session.assuranceLevel < level
    else { return nil }
    return try await SignInRedirects(driver: driver).address(
      ofAnotherFactorIn: session, setsUp: false, returnTo: here + WishedStep.mark, exchange)
  }

  // MARK: - Addresses

  private func signIn(
    _ request: AuthorizationRequest, again: Bool, _ here: String, _ exchange: Exchange
  ) -> Response {
    let hint = request.loginHint
    let isAddress = hint?.contains("@") ?? false
    let address = FormFields.address(
      PagePath.signIn,
      [
        "with": isAddress ? "email" : nil, "login_hint": isAddress ? hint : nil,
        "phone": hint?.wholeMatch(of: /\+?[0-9 ()-]{5,24}/) == nil ? nil : hint,
        "return_to": again ? here + SignInAgain.mark : here,
      ])
    return exchange.redirect(to: localized(address, request, exchange))
  }

  /// The address of a page in the language that the app asks for, if it is there and the user has chosen none.
  private func localized(_ address: String, _ request: AuthorizationRequest, _ exchange: Exchange) -> String {
    let wanted = (request.uiLocales ?? "").split(separator: " ").map(String.init)
    guard let language = pages.language(wanted, exchange) else { return address }
    return address + "&\(PageRenderer.appLanguage)=\(language)"
  }
}

extension AuthorizationStep {
  /// The error for `prompt=none`, with which nothing is shown; nil if nothing has to be.
  fileprivate var silentError: OAuthError? {
    switch self {
    case .signIn: OAuthError("login_required", "the user must sign in")
    case .stepUp: OAuthError("interaction_required", "the user must pass another step")
    case .consent: OAuthError("consent_required", "the user must agree")
    case .refuse(let error, _): error
    case .ready: nil
    }
  }
}
