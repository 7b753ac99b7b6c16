import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/login` and `/auth/register`: sign-in and registration by phone number, email address or another site. The
/// `entrance` of a provider's descriptor decides how the page offers it.
struct SignInPage: Sendable {
  enum Kind: Sendable {
    case login, register

    var path: String { self == .login ? "/auth/login" : "/auth/register" }
  }

  /// A sign-in method on these pages.
  enum SignInMethod: String, Sendable, CaseIterable {
    case phone
    /// Email address and password.
    case email
    /// A code to the email address.
    case code
    /// A code for a password reset.
    case reset
  }

  let kind: Kind
  let driver: FlowDriver
  let pages: PageRenderer
  let passwords: PasswordForm

  init(_ kind: Kind, _ driver: FlowDriver, _ pages: PageRenderer) {
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
        if let name = query["flow"],
          let answer = try passwords.stepUp(
            name, session.account, returnTo, problem: refused(query, exchange), exchange)
        {
          return answer
        }
        // A signed-in user resets the password from the account page. The code goes to the account's own address.
        if kind == .login, query["with"] == SignInMethod.reset.rawValue, isOffered(.reset, flow, exchange) {
          var form = SignInForm(way: .reset, flow: nil, returnTo: returnTo)
          form.email = session.account.identifier(.email)?.identifier.display
          form.isSignedIn = true
          return page(form, exchange)
        }
        if flow == nil {
          return exchange.redirect(to: returnTo ?? exchange.generation.flows[defaultFlow]?.next.returning ?? "/")
        }
      }
      if hasOnlyLinks(flow, exchange) {
        return exchange.redirect(to: ProviderPage.stepAddress(flow ?? defaultFlow, with: nil, returnTo: returnTo))
      }
      var form = SignInForm(way: way(query["with"], flow, exchange), flow: flow, returnTo: returnTo)
      form.phone = query["phone"]
      form.region = SignInForm.region(query["region"])
      form.isArrival = kind == .login && exchange.credentials.browser == nil && query["refused"] == nil
      form.told(refused(query, exchange), by: query["refused"], of: query["by"])
      return greeting(page(form, exchange), exchange)
    }
    // "Edit": the same flow with another identifier. If the flow has ended, the form is empty.
    let id = FlowID(text: text)
    guard case .success(let view) = await driver.engine.view(id, client: try await driver.caller(exchange)),
      view.status == .pending
    else {
      var form = SignInForm(way: way(query["with"], flow, exchange), flow: flow, returnTo: returnTo)
      form.phone = query["phone"]
      form.region = SignInForm.region(query["region"])
      return page(form, exchange)
    }
    if ChoosePage.isDue(in: view) { return exchange.redirect(to: ChoosePage.address(of: view)) }
    if passwords.isDue(in: view, exchange) { return try await passwords.show(view, exchange) }
    let own = flow ?? ownFlow(of: view, exchange)
    let isEmail = view.step.flatMap { exchange.page(of: $0.provider) }.map { $0.sendsCodes && $0.isEmail } ?? false
    var form = SignInForm(
      way: view.purpose.recoveredProvider != nil
        ? .reset : view.purpose.registersFactor ? .email : isEmail ? .code : way(query["with"], view.flow, exchange),
      flow: own, returnTo: returnTo)
    form.id = text
    form.region = SignInForm.region(query["region"])
    // After a lock, the user enters another identifier here.
    if view.step?.lockedUntil == nil {
      if isEmail { form.email = view.step?.sentTo } else { form.phone = view.step?.sentTo ?? query["phone"] }
    }
    (form.firstName, form.lastName) = (view.firstName, view.lastName)
    form.told(refused(query, exchange), by: query["refused"], of: query["by"])
    return page(form, exchange)
  }

  /// Adds the cookie that identifies the browser. Browsers without the cookie see the splash screen. A form that
  /// returns without it comes from a browser that stores no cookies. Clients that are not browsers receive none.
  private func greeting(_ page: Response, _ exchange: Exchange) -> Response {
    guard exchange.credentials.browser == nil, exchange.request.isNavigation || exchange.isScripted else { return page }
    var response = page
    response.setCookies([exchange.cookies.begin(SecretText(Base64URL.encode(driver.random.bytes(32))))])
    return response
  }

  /// The message with which a user returns from another site.
  private func refused(_ query: FormFields, _ exchange: Exchange) -> String? {
    guard let name = query["refused"] else { return nil }
    let words = pages.words(exchange)
    if let site = exchange.refusingSite(query["by"]) { return site.sentence(ofRefused: name, words) }
    guard let code = RefusalCode(reserved: name), NextPage.shown.contains(code) else { return nil }
    return words.translated(code.sentence)
  }

  /// Whether the page has no form for any provider of the flow, only links.
  private func hasOnlyLinks(_ own: String?, _ exchange: Exchange) -> Bool {
    let links = links(own, exchange)
    // Without a named flow, the page also offers methods of other flows.
    let isUsed =
      own == nil
      ? [SignInMethod.phone, .email, .code].contains { isOffered($0, nil, exchange) }
      : exchange.offered(first: own ?? "").contains { !isLink($0, own, exchange) }
    return !isUsed && sites(own, exchange).isEmpty
      && !exchange.offered(first: own ?? defaultFlow).contains(where: isCeremony) && !links.isEmpty
  }

  var defaultFlow: String { NextPage.usualFlow(of: kind.path) }

  /// A sign-in flow of the operator that is named in the address; nil for an invalid name and for the page's default
  /// flow.
  func ownFlow(_ name: String?, _ exchange: Exchange) -> String? {
    guard let name, name != defaultFlow, let flow = exchange.generation.flows[name], flow.purpose.letsIn else {
      return nil
    }
    return name
  }

  /// The provider and the flow of a sign-in method; nil if it is not available.
  func entry(_ way: SignInMethod, _ own: String?, _ exchange: Exchange) -> (provider: ProviderPage, flow: String)? {
    let flow = own ?? defaultFlow
    switch way {
    case .phone: return field(.phone, exchange.offered(first: flow)).map { ($0, flow) }
    case .code: return field(.email, exchange.offered(first: flow).filter(\.sendsCodes)).map { ($0, flow) }
    case .email: return passwordEntry(exchange)
    case .reset:
      let usual = passwordEntry(exchange).flatMap { exchange.generation.flow(for: .factor($0.provider.name, .recover)) }
      let others = exchange.generation.flows.values.filter { $0.purpose.recoveredProvider != nil }.sorted {
        $0.name < $1.name
      }
      let resets = [usual].compactMap(\.self) + others
      return resets.lazy.compactMap { reset in
        field(.email, exchange.offered(first: reset.name).filter(\.sendsCodes)).map { ($0, reset.name) }
      }.first
    }
  }

  /// The provider and flow of sign-in with email address and password: the flow for it alone, or else one that offers
  /// it among others.
  private func passwordEntry(_ exchange: Exchange) -> (provider: ProviderPage, flow: String)? {
    let flows = exchange.generation.flows.values.filter { flow in
      if kind == .register { return flow.purpose.registersFactor }
      return flow.purpose == .signIn && flow.account != .new && !flow.needsSession(by: exchange.providers)
    }
    var found: [(provider: ProviderPage, flow: String)] = []
    for flow in flows.sorted(by: { ($0.firstChoices, $0.name) < ($1.firstChoices, $1.name) }) {
      let able = exchange.offered(first: flow.name).filter { $0.isOnEntrance && $0.passwordField != nil }
      if let provider = field(.email, able) { found.append((provider, flow.name)) }
    }
    // Of several flows, the one with the usual name.
    let usual = found.first { provider, flow in
      kind == .register
        ? flow == FlowPurpose.register(setting: provider.name).usualName : flow == "login_\(provider.name)"
    }
    return usual ?? found.first
  }

  /// The provider of the field for a kind of identifier.
  private func field(_ kind: IdentifierKind, _ pages: [ProviderPage]) -> ProviderPage? {
    ProviderPage.taking(kind, of: pages)
  }

  /// The other sites with a button, by descending priority.
  private func sites(_ own: String?, _ exchange: Exchange) -> [ProviderPage] {
    exchange.offered(first: own ?? defaultFlow).filter { $0.isOnEntrance && $0.siteButton != nil }.enumerated().sorted {
      ($1.element.buttonPriority, $0.offset) < ($0.element.buttonPriority, $1.offset)
    }.map(\.element)
  }

  /// The providers that are offered by a link.
  private func links(_ own: String?, _ exchange: Exchange) -> [ProviderPage] {
    exchange.offered(first: own ?? defaultFlow).filter { isLink($0, own, exchange) }
  }

  private func isLink(_ page: ProviderPage, _ own: String?, _ exchange: Exchange) -> Bool {
    if page.isOnEntrance || isCeremony(page) { return false }
    return ![SignInMethod.phone, .code].contains { entry($0, own, exchange)?.provider.name == page.name }
  }

  /// Whether users sign in with its ceremony without typing anything.
  private func isCeremony(_ page: ProviderPage) -> Bool {
    kind == .login && page.ceremonyButton != nil && page.descriptor.role.contains(.findsAccount)
  }

  private func ceremonies(_ form: SignInForm, _ words: Words, _ exchange: Exchange) -> [SignInCeremony] {
    let flow = form.flow ?? defaultFlow
    return exchange.offered(first: flow).filter(isCeremony).map { page in
      let own = words.speaking(page.descriptor.words)
      return SignInCeremony(
        flow: flow, provider: page.name.rawValue, label: page.ceremonyButton.map(own.translated) ?? page.title(words),
        returnTo: form.returnTo,
        cancelled: own["ceremony_cancelled"], failed: own["ceremony_failed"])
    }
  }

  private func isOffered(_ way: SignInMethod, _ own: String?, _ exchange: Exchange) -> Bool {
    entry(way, own, exchange) != nil && (kind == .login || way == .phone || way == .email)
  }

  /// The requested method, if the page offers it. Otherwise, the first method of the operator's flow, or the first of
  /// all.
  private func way(_ asked: String?, _ own: String?, _ exchange: Exchange) -> SignInMethod {
    if let way = asked.flatMap(SignInMethod.init(rawValue:)), isOffered(way, own, exchange) { return way }
    if kind == .login, own == nil, let last = RememberedSignInMethod.find(in: exchange), isOffered(last, own, exchange)
    {
      return last
    }
    let offered = [SignInMethod.phone, .email, .code].filter { isOffered($0, own, exchange) }
    return offered.first { entry($0, own, exchange)?.flow == own ?? defaultFlow } ?? offered.first ?? .phone
  }

  // MARK: sending

  private func send(_ exchange: Exchange) async throws(Refusal) -> Response {
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
    let way = sent["with"].flatMap(SignInMethod.init(rawValue:)) ?? .phone
    var form = SignInForm(way: way, flow: own, returnTo: exchange.targets.accept(sent["return_to"]))
    form.id = sent["id"]
    form.region = SignInForm.region(sent["region"])
    form.phone = sent["phone"]
    form.email = sent["email"]
    form.firstName = sent["first_name"]
    form.lastName = sent["last_name"]
    if try exchange.isSwitch {
      let query = try exchange.query()
      form.told(refused(query, exchange), by: query["refused"], of: query["by"])
      return page(form, exchange)
    }
    // Switches to another method and keeps the typed address. It is in the form's body, not in a URL, which browsers
    // and logs store.
    if let asked = try exchange.query()["with"].flatMap(SignInMethod.init(rawValue:)), isOffered(asked, own, exchange) {
      form.way = asked
      return page(form, exchange)
    }
    // Without cookies, the user could not enter the code, because the flow would belong to another browser.
    if exchange.credentials.browser == nil, exchange.isScripted || exchange.request.isNavigation {
      form.problem = pages.words(exchange)["cookies_needed"]
      return greeting(page(form, exchange, status: .forbidden), exchange)
    }
    var inputs: [String: InputValue] = [:]
    let entry =
      site.map { ($0, own ?? defaultFlow) } ?? edited.flatMap { sender(of: $0, as: way, exchange) } ?? entry(
        way, own, exchange)
      ?? own.flatMap { sender(in: $0, as: way, exchange) }
    guard let (provider, flow) = entry else { throw exchange.refusal(.stepNotOpen) }
    if site == nil {
      inputs[provider.identifierField] = .text(sent[way == .phone ? "phone" : "email"] ?? "")
      if way == .email, let field = provider.passwordField { inputs[field] = .text(sent["password"] ?? "") }
      let more = way == .phone ? ["region"] : kind == .register ? ["first_name", "last_name"] : []
      for name in more { if let text = sent[name] { inputs[name] = .text(text) } }
    }
    let steps = PageFlow(driver: driver)
    let outcome = await steps.begin(
      flow, form.id.map(FlowID.init(text:)), provider.name.rawValue, inputs, returnTo: form.returnTo, exchange)
    switch outcome.result {
    case .success(let begun):
      let kept = kind == .login && own == nil && site == nil ? RememberedSignInMethod.keep(way, exchange) : nil
      return pages.lead(on: begun.view, outcome.cookies + [kept].compactMap(\.self), exchange)
    case .failure(let refusal):
      // Shows the current code page of this number instead of refusing to send another code.
      if refusal.code == .resendTooSoon, let id = outcome.id,
        case .success(let view) = await driver.engine.view(id, client: try await driver.caller(exchange)),
        view.step?.sentTo != nil
      {
        return exchange.redirect(to: exchange.address(of: view), outcome.cookies)
      }
      form.id = outcome.id?.secret.reveal()
      explain(refusal, of: site, in: &form, exchange)
      exchange.note(refusal)
      var response = page(form, exchange, status: refusal.code.httpStatus)
      response.addRefusalHeaders(refusal)
      response.setCookies(outcome.cookies)
      return response
    }
  }

  /// Sets the messages of this page where they differ from those of the refusal.
  /// - Parameter site: the other site of the sign-in; nil for a code or a password.
  private func explain(_ refusal: Refusal, of site: ProviderPage?, in form: inout SignInForm, _ exchange: Exchange) {
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
    case .deliveryFailed where refusal.deliveryReason != nil:
      form.problem = words.undelivered(refusal, otherwise: "unable_to_send", exchange)
    case .deliveryFailed, .busy, .storeUnavailable, .policyError:
      form.problem = site?.siteFailed(words) ?? words["unable_to_send"]
    case .oauthFailed: form.problem = site?.siteFailed(words) ?? form.problem
    case .invalidPassword: form.problem = words.sentenceWithTries(of: refusal)
    default: break
    }
    let fields: [RefusalCode: String] = [
      .invalidPhone: "phone", .invalidEmail: "email", .weakPassword: "password", .invalidPassword: "password",
    ]
    form.invalid = fields[refusal.code] ?? (refusal.code == .invalidInput ? refusal.field : nil)
  }

  // MARK: the page

  private func page(_ form: SignInForm, _ exchange: Exchange, status: HTTPResponse.Status = .ok) -> Response {
    let words = pages.words(exchange)
    let isLogin = kind == .login
    let name = isLogin ? "login" : "register"
    let (heading, subtitle): (String, String) =
      switch form.way {
      case .reset where form.isSignedIn: ("reset_code_title", "reset_subtitle")
      case .reset: ("reset_title", "reset_subtitle")
      case .code: ("code_title", "code_subtitle")
      case .email where !isLogin: ("register_title", "register_email_subtitle")
      default: (name + "_title", name + "_subtitle")
      }
    let phone = form.phone.map { String($0.prefix(64)) }
    // A number without its country could belong to another person in the default country, who would receive the code.
    let (typed, country): (String?, String?) = form.way == .phone && phone != nil ? (phone, form.region) : (nil, nil)
    // The default method needs no parameter, unless another one is remembered.
    let isLastOther = RememberedSignInMethod.find(in: exchange) != nil
    let parameter = { (way: SignInMethod?, path: String) -> String? in
      way == nil || way == .phone
        ? (isLastOther && path == Kind.login.path && form.flow == nil ? SignInMethod.phone.rawValue : nil)
        : way?.rawValue
    }
    let carried: (String, SignInMethod?) -> String = { path, way in
      FormFields.address(
        path,
        [
          "with": parameter(way, path), "phone": typed, "region": country, "flow": form.flow,
          "return_to": form.returnTo,
        ])
    }
    let here = kind.path
    let address = FormFields.address(
      here,
      [
        "id": form.id, "with": parameter(form.way, here), "flow": form.flow, "return_to": form.returnTo,
        "refused": form.refused,
        "by": form.refusedBy,
      ])
    var ways: [EntranceModel.Link] = []
    let offer = { (way: SignInMethod, label: String) in
      if way != form.way, isOffered(way, form.flow, exchange) {
        ways.append(EntranceModel.Link(label: words[label], address: carried(here, way)))
      }
    }
    var forms: [EntranceModel.Link] = []
    switch form.way {
    case .phone: offer(.email, "use_email")
    case .email:
      if isOffered(.code, form.flow, exchange) {
        forms.append(EntranceModel.Link(label: words["use_code"], address: carried(here, .code)))
      }
      offer(.phone, "use_phone")
    case .code, .reset:
      offer(.email, "remembered")
      offer(.phone, "use_phone")
    }
    if form.way != .reset {
      for other in links(form.flow, exchange) {
        let address = ProviderPage.stepAddress(form.flow ?? defaultFlow, with: other.name, returnTo: form.returnTo)
        ways.append(
          EntranceModel.Link(
            label: other.linkLabel(words) ?? words.text("use_other", ["name": other.shortName(words)]), address: address
          ))
      }
    }
    let forgotten = form.way == .email && isOffered(.reset, form.flow, exchange) ? carried(here, .reset) : nil
    if form.isSignedIn { ways = [EntranceModel.Link(label: words["cancel"], address: NextPage.back(form.returnTo))] }
    let otherPath = isLogin ? "/auth/register" : "/auth/login"
    let other = EntranceModel.Link(
      label: words[name + "_other"],
      address: carried(otherPath, form.way == .email || form.way == .code ? .email : nil),
      question: words[name + "_question"])
    let hasOther = exchange.generation.flows[isLogin ? "register" : "login"] != nil
    let buttons = form.way == .reset ? [] : sites(form.flow, exchange).map { SiteButton($0, words) }
    let model = EntranceModel(
      heading: words[heading], subtitle: words[subtitle], action: here, isLogin: isLogin, isPhone: form.way == .phone,
      isEmail: form.way == .email,
      isAddress: form.way == .code || form.way == .reset, way: form.way.rawValue, id: form.id, flow: form.flow,
      returnTo: form.returnTo,
      phone: phone, region: form.region ?? exchange.gateway.region,
      callingCode: exchange.callingCode(form.region ?? exchange.gateway.region), email: form.email,
      firstName: form.firstName,
      lastName: form.lastName, hasNames: !isLogin && form.way == .email, code: form.code, problem: form.problem,
      isCalm: form.isCalm,
      phoneIsInvalid: form.invalid == "phone", emailIsInvalid: form.invalid == "email",
      passwordIsInvalid: form.invalid == "password",
      wait: form.wait, waitLabel: words[form.waitsForCode ? "resend_in" : "try_again_in"],
      button: words[
        form.way == .phone ? "send_otp" : form.way == .email ? (isLogin ? "log_in" : "create_account") : "send_code"],
      sites: buttons, hasSites: !buttons.isEmpty,
      ceremonies: form.way == .reset ? [] : ceremonies(form, words, exchange), ways: ways, forms: forms,
      forgotten: forgotten,
      offer: form.offersOther && hasOther ? other : nil, other: form.way == .reset || !hasOther ? nil : other,
      isArrival: form.isArrival,
      stressesSupport: form.stressesSupport)
    let title = form.way == .reset || form.way == .code ? words[heading] : words[name + "_page"]
    return pages.page(model, title: title, kind: name, status: status, at: address, isTypedInto: true, exchange)
  }
}

extension FlowDefinition {
  /// The number of providers that its first step offers.
  fileprivate var firstChoices: Int { steps.first?.choices.count ?? 0 }
}

/// A button that leads to another site.
struct SiteButton: Decodable {
  let provider: String
  let label: String
  /// SVG, only for built-in providers.
  let icon: String?

  init(_ page: ProviderPage, _ words: Words) {
    provider = page.name.rawValue
    label = words.speaking(page.descriptor.words).translated(page.siteButton ?? page.title(words))
    if case .button(_, let icon, _)? = page.descriptor.entrance { self.icon = icon } else { icon = nil }
  }
}
