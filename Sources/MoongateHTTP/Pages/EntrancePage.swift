import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/login` and `/auth/register` (seeds.md, S2 and 4.8): who is it, by number, by email, or by Google.
struct EntrancePage: Sendable {
  enum Kind: Sendable {
    case login, register

    var path: String { self == .login ? "/auth/login" : "/auth/register" }
  }

  /// How a person says who they are.
  enum Way: String, Sendable {
    case phone
    /// With a password.
    case email
    /// A code to the address.
    case code
    /// Also a code, for a new password.
    case reset

    var provider: ProviderName {
      switch self {
      case .phone: "phone_otp"
      case .email: "password"
      case .code, .reset: "email_code"
      }
    }
  }

  let kind: Kind
  let driver: FlowDriver
  let pages: PageRenderer
  let passwords: PasswordForm
  let providers: ProviderRegistry

  init(_ kind: Kind, _ driver: FlowDriver, _ pages: PageRenderer, _ providers: ProviderRegistry) {
    self.providers = providers
    self.kind = kind
    self.driver = driver
    self.pages = pages
    passwords = PasswordForm(driver: driver, pages: pages)
  }

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, kind.path) { exchange throws(Refusal) in try await show(exchange) },
      Endpoint(.page, .post, kind.path) { exchange throws(Refusal) in try await send(exchange) },
    ]
  }

  // MARK: showing

  private func show(_ exchange: Exchange) async throws(Refusal) -> Response {
    let query = try exchange.query()
    let returnTo = exchange.targets.accept(query["return_to"])
    let session = try await driver.session(exchange)
    let flow = ownFlow(query["flow"], exchange)
    guard let text = query["id"] else {
      if let session {
        if let name = query["flow"], let answer = try passwords.stepUp(name, session.account, returnTo, problem: refused(query, exchange), exchange) {
          return answer
        }
        if flow == nil { return exchange.leadOn(to: returnTo ?? exchange.generation.flows[defaultFlow]?.next.returning ?? "/") }
      }
      if hasOnlyStrangers(flow, exchange) {
        return exchange.leadOn(to: Stranger.address(flow ?? defaultFlow, with: nil, returnTo: returnTo))
      }
      var form = EntranceForm(way: way(query["with"], flow, exchange), flow: flow, returnTo: returnTo)
      form.phone = query["phone"]
      form.region = EntranceForm.region(query["region"])
      form.isArrival = kind == .login && exchange.credentials.browser == nil && query["refused"] == nil
      form.told(refused(query, exchange), by: query["refused"])
      return page(form, exchange)
    }
    // Edit: the same flow, another number. A flow that is dead leaves an empty form.
    let id = FlowID(text: text)
    guard case .success(let view) = await driver.engine.view(id, client: try await driver.caller(exchange)), view.status == .pending else {
      var form = EntranceForm(way: way(query["with"], flow, exchange), flow: flow, returnTo: returnTo)
      form.phone = query["phone"]
      form.region = EntranceForm.region(query["region"])
      return page(form, exchange)
    }
    if ChoosePage.isDue(in: view) { return exchange.leadOn(to: ChoosePage.address(of: view)) }
    if passwords.isDue(in: view) { return try await passwords.show(view, exchange) }
    let isEmail = view.step?.provider.rawValue == "email_code"
    var form = EntranceForm(
      way: view.flow == "password_reset"
        ? .reset : view.flow == "register_email" ? .email : isEmail ? .code : way(query["with"], view.flow, exchange),
      flow: flow, returnTo: returnTo)
    form.id = text
    form.region = EntranceForm.region(query["region"])
    if isEmail { form.email = view.step?.sentTo } else { form.phone = view.step?.sentTo ?? query["phone"] }
    form.told(refused(query, exchange), by: query["refused"])
    return page(form, exchange)
  }

  /// The sentence of what a person comes back from another site with.
  private func refused(_ query: FormFields, _ exchange: Exchange) -> String? {
    query["refused"].flatMap(RefusalCode.init(reserved:)).flatMap {
      NextPage.shown.contains($0) ? pages.words(exchange).translated($0.sentence) : nil
    }
  }

  /// Whether none of the ways into a flow is one that this page offers itself.
  private func hasOnlyStrangers(_ own: String?, _ exchange: Exchange) -> Bool {
    let strangers = Stranger.all(first: own ?? defaultFlow, providers, exchange)
    if let own {
      let choices = exchange.generation.flows[own]?.steps.first?.choices ?? []
      return choices.allSatisfy(Stranger.isOne) && !strangers.isEmpty
    }
    // Without a flow of the operator's own this page knows more ways than the flow has.
    let isUsed = [Way.phone, .email, .code].contains { isOffered($0, nil, exchange) } || offers("google_oauth", in: defaultFlow, exchange)
    return !isUsed && !strangers.isEmpty
  }

  private var defaultFlow: String { kind == .login ? "login" : "register" }

  /// A flow of the operator's own to sign in by, as a route names it; nil for ours and for what is none.
  private func ownFlow(_ name: String?, _ exchange: Exchange) -> String? {
    guard let name, exchange.generation.flows[name] != nil, FlowPurpose(flow: name) == .signIn else { return nil }
    return name
  }

  /// The flow of a way.
  private func flow(_ way: Way, _ own: String?) -> String {
    switch (kind, way) {
    case (.login, .email): "login_password"
    case (.register, .email): "register_email"
    case (_, .reset): "password_reset"
    default: own ?? defaultFlow
    }
  }

  private func isOffered(_ way: Way, _ own: String?, _ exchange: Exchange) -> Bool {
    offers(way.provider, in: flow(way, own), exchange) && (kind == .login || way == .phone || way == .email)
  }

  private func offers(_ provider: ProviderName, in flow: String, _ exchange: Exchange) -> Bool {
    exchange.generation.policies[provider] != nil && exchange.generation.flows[flow]?.steps.first?.choices.contains(provider) ?? false
  }

  /// The way that was asked for where it is offered, else the first that is.
  private func way(_ asked: String?, _ own: String?, _ exchange: Exchange) -> Way {
    if let way = asked.flatMap(Way.init(rawValue:)), isOffered(way, own, exchange) { return way }
    return [Way.phone, .email, .code].first { isOffered($0, own, exchange) } ?? .phone
  }

  // MARK: sending

  private func send(_ exchange: Exchange) async throws(Refusal) -> Response {
    let sent = try await exchange.form()
    if sent["step"] == "password" { return try await passwords.judge(sent, exchange) }
    if sent["provider"] == "google_oauth", let flow = sent["flow"], FlowPurpose(flow: flow).needsSession {
      return try await passwords.leaveForGoogle(flow, returnTo: exchange.targets.accept(sent["return_to"]), exchange)
    }
    let own = ownFlow(sent["flow"], exchange)
    let way = sent["with"].flatMap(Way.init(rawValue:)) ?? .phone
    var form = EntranceForm(way: way, flow: own, returnTo: exchange.targets.accept(sent["return_to"]))
    form.id = sent["id"]
    form.region = EntranceForm.region(sent["region"])
    form.phone = sent["phone"]
    form.email = sent["email"]
    form.firstName = sent["first_name"]
    form.lastName = sent["last_name"]
    if try exchange.isSwitch {
      form.told(refused(try exchange.query(), exchange), by: try exchange.query()["refused"])
      return page(form, exchange)
    }
    let isGoogle = sent["provider"] == "google_oauth"
    var inputs: [String: InputValue] = [:]
    if !isGoogle {
      let names = way == .phone ? ["phone"] : way == .email ? ["email", "password"] : ["email"]
      for name in names { inputs[name] = .text(sent[name] ?? "") }
      let more = way == .phone ? ["region"] : kind == .register ? ["first_name", "last_name"] : []
      for name in more { if let text = sent[name] { inputs[name] = .text(text) } }
    }
    let steps = PageFlow(driver: driver)
    let outcome = await steps.begin(
      isGoogle ? own ?? defaultFlow : flow(way, own), form.id.map(FlowID.init(text:)), isGoogle ? "google_oauth" : way.provider.rawValue, inputs,
      returnTo: form.returnTo, exchange)
    switch outcome.result {
    case .success(let begun): return pages.lead(on: begun.view, outcome.cookies, exchange)
    case .failure(let refusal):
      // The living code page of this number, rather than a refusal to send what was sent already.
      if refusal.code == .resendTooSoon, let id = outcome.id,
        case .success(let view) = await driver.engine.view(id, client: try await driver.caller(exchange)), view.step?.sentTo != nil
      {
        return exchange.leadOn(to: NextPage.address(of: view), outcome.cookies)
      }
      form.id = outcome.id?.secret.reveal()
      explain(refusal, isGoogle: isGoogle, in: &form, exchange)
      exchange.note(refusal)
      var response = page(form, exchange, status: refusal.code.httpStatus)
      response.addRefusalHeaders(refusal)
      response.setCookies(outcome.cookies)
      return response
    }
  }

  /// The sentences of this page (seeds.md, S2), where they are not the refusal's own.
  private func explain(_ refusal: Refusal, isGoogle: Bool, in form: inout EntranceForm, _ exchange: Exchange) {
    let words = pages.words(exchange)
    form.problem = words.sentence(of: refusal)
    form.code = refusal.code.name
    switch refusal.code {
    case .accountNotFound, .alreadyRegistered: form.offersOther = true
    case .tooManyAttempts, .sendLimit, .rateLimited:
      if let wait = refusal.retryAfter {
        form.problem = words.text("too_many_in", ["wait": words.wait(wait)])
        form.wait = Countdown(wait)
      }
      form.stressesSupport = true
    case .resendTooSoon:
      if let wait = refusal.retryAfter {
        form.problem = words.translated(refusal.code.sentence)
        form.wait = Countdown(wait)
        form.waitsForCode = true
      }
    case .deliveryFailed, .busy, .storeUnavailable, .policyError:
      form.problem = isGoogle ? words.translated(RefusalCode.oauthFailed.sentence) : words["unable_to_send"]
    case .invalidPassword: form.problem = words.sentenceWithTries(of: refusal)
    default: break
    }
    let fields: [RefusalCode: String] = [
      .invalidPhone: "phone", .invalidEmail: "email", .weakPassword: "password", .invalidPassword: "password",
    ]
    form.invalid = fields[refusal.code] ?? (refusal.code == .invalidInput ? refusal.field : nil)
  }

  // MARK: the page

  private func page(_ form: EntranceForm, _ exchange: Exchange, status: HTTPResponse.Status = .ok) -> Response {
    let words = pages.words(exchange)
    let isLogin = kind == .login
    let name = isLogin ? "login" : "register"
    let (heading, subtitle): (String, String) =
      switch form.way {
      case .reset: ("reset_title", "reset_subtitle")
      case .code: ("code_title", "code_subtitle")
      case .email where !isLogin: ("register_title", "register_email_subtitle")
      default: (name + "_title", name + "_subtitle")
      }
    let phone = form.phone.map { String($0.prefix(64)) }
    // Without its country a number is somebody else's in ours, who would be sent the code.
    let (typed, country): (String?, String?) = form.way == .phone && phone != nil ? (phone, form.region) : (nil, nil)
    let carried: (String, Way?) -> String = { path, way in
      FormFields.address(
        path,
        [
          "with": way.flatMap { $0 == .phone ? nil : $0.rawValue }, "phone": typed, "region": country, "flow": form.flow,
          "return_to": form.returnTo,
        ])
    }
    let here = kind.path
    let address = FormFields.address(
      here,
      [
        "id": form.id, "with": form.way == .phone ? nil : form.way.rawValue, "flow": form.flow, "return_to": form.returnTo, "refused": form.refused,
      ])
    var ways: [EntranceModel.Link] = []
    let offer = { (way: Way, label: String) in
      if way != form.way, isOffered(way, form.flow, exchange) { ways.append(EntranceModel.Link(label: words[label], address: carried(here, way))) }
    }
    switch form.way {
    case .phone: offer(.email, "use_email")
    case .email:
      offer(.reset, "forgot_password")
      offer(.code, "email_code")
      offer(.phone, "use_phone")
    case .code, .reset:
      offer(.email, "remembered")
      offer(.phone, "use_phone")
    }
    if form.way != .reset {
      for other in Stranger.all(first: form.flow ?? defaultFlow, providers, exchange) {
        let address = Stranger.address(form.flow ?? defaultFlow, with: other.name, returnTo: form.returnTo)
        ways.append(EntranceModel.Link(label: words.text("use_other", ["name": other.title(words)]), address: address))
      }
    }
    let otherPath = isLogin ? "/auth/register" : "/auth/login"
    let other = EntranceModel.Link(
      label: words[name + "_other"], address: carried(otherPath, form.way == .email || form.way == .code ? .email : nil),
      question: words[name + "_question"])
    let hasOther = exchange.generation.flows[isLogin ? "register" : "login"] != nil
    let model = EntranceModel(
      heading: words[heading], subtitle: words[subtitle], action: here, isLogin: isLogin, isPhone: form.way == .phone, isEmail: form.way == .email,
      isAddress: form.way == .code || form.way == .reset, way: form.way.rawValue, id: form.id, flow: form.flow, returnTo: form.returnTo,
      phone: phone, region: form.region ?? exchange.gateway.region, email: form.email, firstName: form.firstName,
      lastName: form.lastName, hasNames: !isLogin && form.way == .email, code: form.code, problem: form.problem,
      isCalm: form.isCalm,
      phoneIsInvalid: form.invalid == "phone", emailIsInvalid: form.invalid == "email", passwordIsInvalid: form.invalid == "password",
      wait: form.wait, waitLabel: words[form.waitsForCode ? "resend_in" : "try_again_in"],
      button: words[form.way == .phone ? "send_otp" : form.way == .email ? (isLogin ? "log_in" : "create_account") : "send_code"],
      google: form.way != .reset && offers("google_oauth", in: form.flow ?? defaultFlow, exchange), ways: ways,
      offer: form.offersOther && hasOther ? other : nil, other: form.way == .reset || !hasOther ? nil : other, isArrival: form.isArrival,
      stressesSupport: form.stressesSupport)
    return pages.page(model, title: words[name + "_page"], kind: name, status: status, at: address, isTypedInto: true, exchange)
  }
}
