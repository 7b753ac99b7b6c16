import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

extension SignInPage {
  func send(_ exchange: Exchange) async throws(Refusal) -> Response {
    let sent = try await exchange.form()
    if let asked = sent["step"].flatMap(ProviderName.init(rawValue:)).flatMap(exchange.page(of:)),
      asked.passwordField != nil
    {
      return try await passwords.judge(asked, sent, exchange)
    }
    let site = sent["provider"].flatMap(ProviderName.init(rawValue:)).flatMap(exchange.page(of:)).flatMap {
      $0.siteButton == nil ? nil : $0
    }
    if let site, let flow = sent["flow"], exchange.generation.purpose(of: flow).needsSession {
      return try await passwords.leave(for: site, flow, returnTo: exchange.targets.accept(sent["return_to"]), exchange)
    }
    let edited = try await edited(sent["id"], exchange)
    let own = edited == nil ? ownFlow(sent["flow"], exchange) : edited?.flow
    // A flow in progress may have an invitation of its own, and the engine decides at its end.
    if kind == .register, edited == nil { try demandOpen(own, by: try await driver.invitation(exchange), exchange) }
    let method = sent["with"].flatMap(SignInMethod.init(rawValue:)) ?? .phone
    var form = SignInForm(method: method, flow: own, returnTo: exchange.targets.accept(sent["return_to"]))
    form.id = sent["id"]
    form.region = SignInForm.region(sent["region"])
    form.phone = sent["phone"]
    form.email = sent["email"]
    form.firstName = sent["first_name"]
    form.lastName = sent["last_name"]
    form.isRemembered = sent["remember"] != nil
    if try exchange.isSwitch {
      let query = try exchange.query()
      form.show(refused(query, exchange), by: query["refused"], of: query["by"])
      return page(form, exchange)
    }
    // Switches to another method and keeps the typed address. It is in the form's body, not in a URL, which browsers
    // and logs store.
    if let asked = try exchange.query()["with"].flatMap(SignInMethod.init(rawValue:)), isOffered(asked, own, exchange) {
      form.method = asked
      return page(form, exchange)
    }
    // Without cookies, the user could not enter the code, because the flow would belong to another browser.
    if exchange.credentials.browser == nil, exchange.isScripted || exchange.request.isNavigation {
      form.problem = pages.words(exchange)["cookies_needed"]
      return greeting(page(form, exchange, status: .forbidden), exchange)
    }
    return try await begin(form, sent, own: own, edited: edited, site: site, exchange)
  }

  /// More than five parameters: the parts of one submitted form, all of which `send` has read.
  /// Begins the flow with the input of the form.
  private func begin(
    _ form: SignInForm, _ sent: FormFields, own: String?, edited: EditedFlow?, site: ProviderPage?,
    _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    var form = form
    let method = form.method
    var inputs: [String: InputValue] = [:]
    let entry =
      site.map { ($0, own ?? defaultFlow) } ?? edited.flatMap { sender(of: $0, as: method, exchange) } ?? entry(
        method, own, exchange)
      ?? own.flatMap { sender(in: $0, as: method, exchange) }
    guard let (provider, flow) = entry else { throw exchange.refusal(.stepNotOpen) }
    if site == nil {
      let typed = sent[method == .phone ? "phone" : "email"] ?? ""
      inputs[provider.identifierField(for: typed)] = .text(typed)
      if method == .email, let field = provider.passwordField { inputs[field] = .text(sent["password"] ?? "") }
      let more = method == .phone ? ["region"] : kind == .register ? ["first_name", "last_name"] : []
      for name in more { if let text = sent[name] { inputs[name] = .text(text) } }
    }
    let steps = PageFlow(driver: driver, remember: form.isRemembered)
    let outcome = await steps.begin(
      flow, form.id.map(FlowID.init(text:)), provider.name.rawValue, inputs, returnTo: form.returnTo, exchange)
    switch outcome.result {
    case .success(let begun):
      return pages.continueFlow(on: begun.view, outcome.cookies, exchange)
    case .failure(let refusal):
      if let current = try await steps.currentCode(after: refusal, outcome, exchange) { return current }
      form.id = outcome.id?.secret.reveal()
      explain(refusal, of: site, in: &form, exchange)
      exchange.log(refusal)
      var response = page(form, exchange, refusal: refusal)
      response.setCookies(outcome.cookies)
      return response
    }
  }

  /// Sets the message of a refusal, and what the page shows with it.
  /// - Parameter site: the other site of the sign-in; nil for a code or a password.
  private func explain(_ refusal: Refusal, of site: ProviderPage?, in form: inout SignInForm, _ exchange: Exchange) {
    let words = pages.words(exchange)
    let siteFailed = site?.siteFailed(words)
    form.problem = words.sentence(of: refusal, failing: siteFailed ?? words["unable_to_send"], exchange)
    form.code = refusal.code.name
    switch refusal.code {
    case .accountNotFound, .alreadyRegistered: form.offersOther = true
    case .tooManyAttempts, .sendLimit, .rateLimited:
      form.wait = refusal.retryAfter.map(Countdown.init)
      form.stressesSupport = true
    case .resendTooSoon:
      form.wait = refusal.retryAfter.map(Countdown.init)
      form.waitsForCode = form.wait != nil
    case .oauthFailed: form.problem = siteFailed ?? form.problem
    case .invalidPassword where identifierLabel(form, exchange) != "email":
      form.problem = words.sentenceWithAttempts(of: refusal, saying: words["incorrect_name"])
    default: break
    }
    let fields: [RefusalCode: String] = [
      .invalidPhone: "phone", .invalidEmail: "email", .weakPassword: "password", .invalidPassword: "password",
    ]
    form.invalid = fields[refusal.code] ?? (refusal.code == .invalidInput ? refusal.field : nil)
  }
}
