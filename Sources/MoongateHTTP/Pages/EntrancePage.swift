import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/login` and `/auth/register` (seeds.md, S2 and 4.8): who is it, by number, by email, or by another site. Which providers stand behind these ways,
/// their `entrance` says.
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
        if let name = query["flow"], let answer = try passwords.stepUp(name, session.account, returnTo, problem: refused(query, exchange), exchange) {
          return answer
        }
        if flow == nil { return exchange.leadOn(to: returnTo ?? exchange.generation.flows[defaultFlow]?.next.returning ?? "/") }
      }
      if hasOnlyLinks(flow, exchange) {
        return exchange.leadOn(to: ProviderPage.stepAddress(flow ?? defaultFlow, with: nil, returnTo: returnTo))
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
    if passwords.isDue(in: view, exchange) { return try await passwords.show(view, exchange) }
    let isEmail = view.step.flatMap { exchange.page(of: $0.provider) }.map { $0.sendsCodes && $0.isEmail } ?? false
    var form = EntranceForm(
      way: view.purpose.recoveredProvider != nil
        ? .reset : view.purpose.registersFactor ? .email : isEmail ? .code : way(query["with"], view.flow, exchange),
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
  private func hasOnlyLinks(_ own: String?, _ exchange: Exchange) -> Bool {
    let links = links(own, exchange)
    // Without a flow of the operator's own this page knows more ways than the flow has.
    let isUsed =
      own == nil
      ? [Way.phone, .email, .code].contains { isOffered($0, nil, exchange) }
      : exchange.offered(first: own ?? "").contains { !isLink($0, own, exchange) }
    return !isUsed && sites(own, exchange).isEmpty && !links.isEmpty
  }

  private var defaultFlow: String { kind == .login ? "login" : "register" }

  /// A flow of the operator's own to sign in by, as a route names it; nil for ours and for what is none.
  private func ownFlow(_ name: String?, _ exchange: Exchange) -> String? {
    guard let name, let flow = exchange.generation.flows[name], [.signIn, .register(setting: nil)].contains(flow.purpose) else { return nil }
    return name
  }

  /// The provider that stands behind a way, and the flow that it begins; nil where there is none.
  private func entry(_ way: Way, _ own: String?, _ exchange: Exchange) -> (provider: ProviderPage, flow: String)? {
    let flow = own ?? defaultFlow
    switch way {
    case .phone: return field(.phone, exchange.offered(first: flow)).map { ($0, flow) }
    case .code: return field(.email, exchange.offered(first: flow).filter(\.sendsCodes)).map { ($0, flow) }
    case .email: return passwordEntry(exchange)
    case .reset:
      let usual = passwordEntry(exchange).flatMap { exchange.generation.flow(for: .factor($0.provider.name, .recover)) }
      let others = exchange.generation.flows.values.filter { $0.purpose.recoveredProvider != nil }.sorted { $0.name < $1.name }
      let resets = [usual].compactMap(\.self) + others
      return resets.lazy.compactMap { reset in
        field(.email, exchange.offered(first: reset.name).filter(\.sendsCodes)).map { ($0, reset.name) }
      }.first
    }
  }

  /// A password beside an address, in the flow that is for it alone, or else in one that offers it among others.
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
    // Of several, the one with the usual name.
    let usual = found.first { provider, flow in
      kind == .register ? flow == FlowPurpose.register(setting: provider.name).usualName : flow == "login_\(provider.name)"
    }
    return usual ?? found.first
  }

  /// The provider that takes the field for identifiers of a kind.
  private func field(_ kind: IdentifierKind, _ pages: [ProviderPage]) -> ProviderPage? {
    let able = pages.compactMap { page -> (page: ProviderPage, priority: Int)? in
      if case .field(kind, let priority)? = page.descriptor.entrance { (page, priority) } else { nil }
    }
    return able.reduce(nil as (page: ProviderPage, priority: Int)?) { best, next in best.map { $0.priority >= next.priority } ?? false ? best : next
    }?.page
  }

  /// The other sites that have a button, those of the highest priority first.
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
    if page.isOnEntrance { return false }
    return ![Way.phone, .code].contains { entry($0, own, exchange)?.provider.name == page.name }
  }

  private func isOffered(_ way: Way, _ own: String?, _ exchange: Exchange) -> Bool {
    entry(way, own, exchange) != nil && (kind == .login || way == .phone || way == .email)
  }

  /// The way that was asked for where it is offered, else the first that is.
  private func way(_ asked: String?, _ own: String?, _ exchange: Exchange) -> Way {
    if let way = asked.flatMap(Way.init(rawValue:)), isOffered(way, own, exchange) { return way }
    return [Way.phone, .email, .code].first { isOffered($0, own, exchange) } ?? .phone
  }

  // MARK: sending

  private func send(_ exchange: Exchange) async throws(Refusal) -> Response {
    let sent = try await exchange.form()
    if let asked = sent["step"].flatMap(ProviderName.init(rawValue:)).flatMap(exchange.page(of:)), asked.passwordField != nil {
      return try await passwords.judge(asked, sent, exchange)
    }
    let site = sent["provider"].flatMap(ProviderName.init(rawValue:)).flatMap(exchange.page(of:)).flatMap { $0.siteButton == nil ? nil : $0 }
    if let site, let flow = sent["flow"], exchange.generation.purpose(of: flow).needsSession {
      return try await passwords.leave(for: site, flow, returnTo: exchange.targets.accept(sent["return_to"]), exchange)
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
    var inputs: [String: InputValue] = [:]
    let entry = site.map { ($0, own ?? defaultFlow) } ?? entry(way, own, exchange)
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
    case .success(let begun): return pages.lead(on: begun.view, outcome.cookies, exchange)
    case .failure(let refusal):
      // The living code page of this number, rather than a refusal to send what was sent already.
      if refusal.code == .resendTooSoon, let id = outcome.id,
        case .success(let view) = await driver.engine.view(id, client: try await driver.caller(exchange)), view.step?.sentTo != nil
      {
        return exchange.leadOn(to: exchange.address(of: view), outcome.cookies)
      }
      form.id = outcome.id?.secret.reveal()
      explain(refusal, isOfSite: site != nil, in: &form, exchange)
      exchange.note(refusal)
      var response = page(form, exchange, status: refusal.code.httpStatus)
      response.addRefusalHeaders(refusal)
      response.setCookies(outcome.cookies)
      return response
    }
  }

  /// The sentences of this page (seeds.md, S2), where they are not the refusal's own.
  private func explain(_ refusal: Refusal, isOfSite: Bool, in form: inout EntranceForm, _ exchange: Exchange) {
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
      form.problem = isOfSite ? words.translated(RefusalCode.oauthFailed.sentence) : words["unable_to_send"]
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
      for other in links(form.flow, exchange) {
        let address = ProviderPage.stepAddress(form.flow ?? defaultFlow, with: other.name, returnTo: form.returnTo)
        ways.append(EntranceModel.Link(label: other.linkLabel(words) ?? words.text("use_other", ["name": other.shortName(words)]), address: address))
      }
    }
    let otherPath = isLogin ? "/auth/register" : "/auth/login"
    let other = EntranceModel.Link(
      label: words[name + "_other"], address: carried(otherPath, form.way == .email || form.way == .code ? .email : nil),
      question: words[name + "_question"])
    let hasOther = exchange.generation.flows[isLogin ? "register" : "login"] != nil
    let buttons = form.way == .reset ? [] : sites(form.flow, exchange).map { SiteButton($0, words) }
    let model = EntranceModel(
      heading: words[heading], subtitle: words[subtitle], action: here, isLogin: isLogin, isPhone: form.way == .phone, isEmail: form.way == .email,
      isAddress: form.way == .code || form.way == .reset, way: form.way.rawValue, id: form.id, flow: form.flow, returnTo: form.returnTo,
      phone: phone, region: form.region ?? exchange.gateway.region, email: form.email, firstName: form.firstName,
      lastName: form.lastName, hasNames: !isLogin && form.way == .email, code: form.code, problem: form.problem,
      isCalm: form.isCalm,
      phoneIsInvalid: form.invalid == "phone", emailIsInvalid: form.invalid == "email", passwordIsInvalid: form.invalid == "password",
      wait: form.wait, waitLabel: words[form.waitsForCode ? "resend_in" : "try_again_in"],
      button: words[form.way == .phone ? "send_otp" : form.way == .email ? (isLogin ? "log_in" : "create_account") : "send_code"],
      sites: buttons, hasSites: !buttons.isEmpty, ways: ways,
      offer: form.offersOther && hasOther ? other : nil, other: form.way == .reset || !hasOther ? nil : other, isArrival: form.isArrival,
      stressesSupport: form.stressesSupport)
    return pages.page(model, title: words[name + "_page"], kind: name, status: status, at: address, isTypedInto: true, exchange)
  }
}

extension FlowDefinition {
  /// How many providers its first step offers.
  fileprivate var firstChoices: Int { steps.first?.choices.count ?? 0 }
}

/// A button that leads to another site.
struct SiteButton: Decodable {
  let provider: String
  let label: String
  /// SVG, of a provider that is part of the program.
  let icon: String?

  init(_ page: ProviderPage, _ words: Words) {
    provider = page.name.rawValue
    label = words.speaking(page.descriptor.words).translated(page.siteButton ?? page.title(words))
    if case .button(_, let icon, _)? = page.descriptor.entrance { self.icon = icon } else { icon = nil }
  }
}
