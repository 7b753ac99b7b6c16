import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// `/auth/device`: the user enters the code that a device shows, sees which app asks, and decides (RFC 8628 section
/// 3.3).
///
/// Attack: phishing with a code of the attacker's own device (RFC 8628 section 5.4). The page says which app has asked,
/// when and from which address, warns of codes from others, and acts only after a button was pressed. A link can fill
/// in the code and nothing else.
///
/// Attack: guessing codes (RFC 8628 section 5.1). Wrong ones count in the ledger, and the page needs a session.
struct DevicePage: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer
  let apps: Apps

  private static let allow = "allow"
  /// More than any code that a person types, with separators.
  private static let longest = 32

  /// A pending request of a device.
  private struct Pending: Sendable {
    let request: DeviceRequest
    let app: App
    let code: String
  }

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, PagePath.device) { exchange throws(Refusal) in
        try demandApps(exchange)
        // Text from a link is shown only if it is a code.
        let code = Self.code(try exchange.query()["user_code"])
        guard let own = try await driver.session(exchange) else { return try signIn(code, exchange) }
        return form(code, nil, own.account, exchange)
      },
      Endpoint(.page, .post, PagePath.device) { exchange throws(Refusal) in
        try demandApps(exchange)
        let sent = try await exchange.form()
        let typed = sent["user_code"].map { String($0.prefix(Self.longest)) }
        let code = Self.code(typed)
        guard let own = try await driver.session(exchange) else { return try signIn(code, exchange) }
        if try exchange.isSwitch { return form(typed, nil, own.account, exchange) }
        guard let pending = try await pending(code, exchange) else { return wrong(typed, own.account, exchange) }
        switch sent["action"] {
        case "cancel": return try await decide(pending, nil, own, exchange)
        // Attack: the user has agreed for another account than the one that is signed in by now.
        case Self.allow where sent["account"] == own.account.id:
          return try await decide(pending, own, own, exchange)
        default: return try await ask(pending, own, exchange)
        }
      },
    ]
  }

  /// The code as devices show it; nil for any other text.
  private static func code(_ typed: String?) -> String? {
    guard let letters = typed.map({ TypedCode($0).text.uppercased() }), letters.wholeMatch(of: /[A-Z]{8}/) != nil else {
      return nil
    }
    return "\(letters.prefix(4))-\(letters.suffix(4))"
  }

  private static func address(_ code: String?) -> String { FormFields.address(PagePath.device, ["user_code": code]) }

  private func demandApps(_ exchange: Exchange) throws(Refusal) {
    guard exchange.generation.apps.apps.contains(where: { $0.grants.contains(.deviceCode) }) else {
      throw exchange.refusal(.notFound, reason: "no app of apps.lua has the grant device_code")
    }
  }

  private func signIn(_ code: String?, _ exchange: Exchange) throws(Refusal) -> Response {
    try exchange.redirectToSignIn(returnTo: Self.address(code))
  }

  private func pending(_ code: String?, _ exchange: Exchange) async throws(Refusal) -> Pending? {
    guard let code else { return nil }
    let found = try await exchange.mappingFaults { () async throws(StoreFault) in
      try await apps.deviceRequest(typed: code, exchange.appCall)
    }
    guard let found, let app = exchange.generation.apps[found.app], app.grants.contains(.deviceCode) else { return nil }
    return Pending(request: found, app: app, code: code)
  }

  // MARK: - Deciding

  /// Asks whether the app may act for the account, unless the app's requirements are not met.
  private func ask(_ pending: Pending, _ own: SessionSnapshot, _ exchange: Exchange) async throws(Refusal) -> Response {
    let verdict = apps.verdict(pending.app, own, exchange.appCall)
    guard verdict.isAllowed else {
      let ways = SignInRedirects(driver: driver)
      let back = Self.address(pending.code)
      if let address = try await ways.address(meeting: verdict, in: own, returnTo: back, exchange) {
        return exchange.redirect(to: address)
      }
      throw ways.refusal(verdict, by: apps, of: pending.app, in: own, exchange)
    }
    let words = pages.words(exchange)
    let name: KeyValuePairs = ["app": pending.app.name]
    let back = Self.address(pending.code)
    let model = AppModel(
      heading: words.text("device_confirm_title", name), subtitle: words.text("device_confirm_subtitle", name),
      warning: words["device_warning"],
      scopes: pending.app.permitted(pending.request.scopes).map { words.text(ofScope: $0) },
      scopesLabel: words.text("consent_scopes", name),
      facts: [
        AppModel.Fact(words["device_code"], value: pending.code),
        AppModel.Fact(words["device_asked"], time: pending.request.createdAt.text),
        AppModel.Fact(words["device_from"], value: pending.request.address),
      ], signedInAs: signedIn(own.account, words), other: FormFields.address(PagePath.signOut, ["return_to": back]),
      action: PagePath.device,
      fields: [AppModel.Field("user_code", pending.code), AppModel.Field("account", own.account.id)],
      allow: Self.allow, allowLabel: words["allow"])
    return pages.question(model, at: back, exchange)
  }

  /// - Parameter allowing: the session whose user agrees; nil: they refuse.
  private func decide(
    _ pending: Pending, _ allowing: SessionSnapshot?, _ own: SessionSnapshot, _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    do throws(AppFault) {
      try await apps.decideDevice(pending.request, pending.app, allowedBy: allowing, exchange.appCall)
    } catch {
      switch error {
      case .store(let fault): throw exchange.refusal(.storeUnavailable, fault: fault.description)
      case .policy(let fault): throw exchange.refusal(.policyError, fault: fault.description)
      case .oauth(let error) where error.code == "access_denied": return try await ask(pending, own, exchange)
      // It has expired, or was decided in another tab.
      case .oauth: return wrong(pending.code, own.account, exchange)
      }
    }
    let words = pages.words(exchange)
    return allowing == nil
      ? pages.message(
        words["device_refused_title"], words.text("device_refused", ["app": pending.app.name]), at: PagePath.device,
        exchange)
      : pages.message(words["device_allowed_title"], words["device_allowed"], at: PagePath.device, exchange)
  }

  // MARK: - The field for the code

  private func wrong(_ typed: String?, _ account: Account, _ exchange: Exchange) -> Response {
    let refusal = exchange.refusal(.invalidCode, field: "user_code")
    exchange.log(refusal)
    return form(typed, refusal, account, exchange)
  }

  private func form(_ typed: String?, _ refusal: Refusal?, _ account: Account, _ exchange: Exchange) -> Response {
    let words = pages.words(exchange)
    let model = DeviceModel(
      subtitle: words["device_subtitle"], action: PagePath.device, typed: typed,
      problem: refusal.map { _ in words["device_wrong"] }, signedInAs: signedIn(account, words),
      other: FormFields.address(PagePath.signOut, ["return_to": Self.address(Self.code(typed))]))
    return pages.page(
      model, title: words["device_title"], refusal: refusal, at: PagePath.device, isTypedInto: true, exchange)
  }

  private func signedIn(_ account: Account, _ words: Words) -> String? {
    account.hint.map { words.text("signed_in_as", ["who": $0]) }
  }
}
