import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/login` and `/auth/register`: sign-in and registration by phone number, email address or another site. The
/// `entrance` of a provider's descriptor decides how the page offers it.
struct SignInPage: Sendable {
  enum Kind: Sendable {
    case login, register

    var path: String { self == .login ? PagePath.signIn : PagePath.register }
  }

  /// A sign-in method on these pages.
  enum SignInMethod: String, Sendable, CaseIterable {
    case phone
    /// Email address or user name, and password.
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

  private func show(_ exchange: Exchange) async throws(Refusal) -> Response {
    let query = try exchange.query()
    let returnTo = exchange.targets.accept(query["return_to"])
    let session = try await driver.session(exchange)
    let flow = ownFlow(query["flow"], exchange)
    let edited = try await edited(query["id"], exchange)
    let invitation = kind == .register ? try await driver.invitation(exchange) : nil
    if kind == .register {
      if session == nil {
        // A flow in progress may have an invitation of its own.
        if edited == nil { try demandOpen(flow, by: invitation, exchange) }
      } else if !exchange.generation.registers {
        return exchange.redirect(to: returnTo ?? "/")
      }
    }
    guard query["id"] != nil else {
      if let session, let answer = try show(to: session, query, flow: flow, returnTo: returnTo, exchange) {
        return answer
      }
      if hasOnlyLinks(flow, exchange) {
        return exchange.redirect(to: ProviderPage.stepAddress(flow ?? defaultFlow, with: nil, returnTo: returnTo))
      }
      var form = SignInForm(method: method(query["with"], flow, exchange), flow: flow, returnTo: returnTo)
      form.phone = query["phone"]
      form.email = query["login_hint"].map { String($0.prefix(255)) }
      form.region = SignInForm.region(query["region"])
      let takesEmail = entry(form.method, flow, exchange)?.provider.takes(.email) ?? true
      form.fill(from: invitation, takesEmail: takesEmail)
      form.isArrival = kind == .login && exchange.credentials.browser == nil && query["refused"] == nil
      form.show(refused(query, exchange), by: query["refused"], of: query["by"])
      return greeting(page(form, exchange), exchange)
    }
    // "Edit": the same flow with another identifier. If the flow has ended, the form is empty.
    guard let view = edited?.view else {
      var form = SignInForm(method: method(query["with"], flow, exchange), flow: flow, returnTo: returnTo)
      form.phone = query["phone"]
      form.region = SignInForm.region(query["region"])
      return page(form, exchange)
    }
    return try await showAgain(view, query, flow: flow, returnTo: returnTo, exchange)
  }

  /// The response for a user who is already signed in; nil to show the page.
  private func show(
    to session: SessionSnapshot, _ query: FormFields, flow: String?, returnTo: String?, _ exchange: Exchange
  ) throws(Refusal) -> Response? {
    let account = session.account
    if let name = query["flow"],
      let answer = try passwords.stepUp(name, account, returnTo, problem: refused(query, exchange), exchange)
    {
      return answer
    }
    // A signed-in user resets the password from the account page. The code goes to the account's own address.
    if kind == .login, query["with"] == SignInMethod.reset.rawValue, isOffered(.reset, flow, exchange) {
      var form = SignInForm(method: .reset, flow: nil, returnTo: returnTo)
      form.email = account.identifier(.email)?.identifier.display
      form.isSignedIn = true
      form.exposed = exchange.exposure(in: session.session)
      form.skip = exchange.isOffer ? returnTo ?? exchange.generation.flows[defaultFlow]?.next.returning ?? "/" : nil
      return page(form, exchange)
    }
    guard flow == nil, !SignInAgain.isMarked(returnTo) else { return nil }
    return exchange.redirect(to: returnTo ?? exchange.generation.flows[defaultFlow]?.next.returning ?? "/")
  }

  /// Shows the page of a flow in progress, so that the user can correct the identifier.
  private func showAgain(
    _ view: FlowView, _ query: FormFields, flow: String?, returnTo: String?, _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    if ChoosePage.isDue(in: view) || view.app?.needsConsent ?? false {
      return exchange.redirect(to: exchange.address(of: view))
    }
    if passwords.isDue(in: view, exchange) { return try await passwords.show(view, exchange) }
    let own = flow ?? ownFlow(of: view, exchange)
    let isEmail = view.step.flatMap { exchange.page(of: $0.provider) }.map { $0.sendsCodes && $0.isEmail } ?? false
    var form = SignInForm(
      method: view.purpose.recoveredProvider != nil
        ? .reset : view.purpose.registersFactor ? .email : isEmail ? .code : method(query["with"], view.flow, exchange),
      flow: own, returnTo: returnTo)
    form.id = view.id.secret.reveal()
    form.region = SignInForm.region(query["region"])
    // After a lock, the user enters another identifier here.
    if view.step?.lockedUntil == nil {
      if isEmail { form.email = view.step?.sentTo } else { form.phone = view.step?.sentTo ?? query["phone"] }
    }
    (form.firstName, form.lastName) = (view.firstName, view.lastName)
    form.isRemembered = view.isRemembered ?? false
    form.show(refused(query, exchange), by: query["refused"], of: query["by"])
    return page(form, exchange)
  }

  /// Adds the cookie that identifies the browser. Browsers without the cookie see the splash screen. A form that
  /// returns without it comes from a browser that stores no cookies. Clients that are not browsers receive none.
  func greeting(_ page: Response, _ exchange: Exchange) -> Response {
    guard exchange.credentials.browser == nil, exchange.request.isNavigation || exchange.isScripted else { return page }
    var response = page
    let browser = SecretText(Base64URL.encode(driver.random.bytes(32)))
    response.setCookies([exchange.cookies.begin(browser)] + exchange.identifyFrame(browser))
    return response
  }

  /// The message with which a user returns from another site.
  func refused(_ query: FormFields, _ exchange: Exchange) -> String? {
    guard let name = query["refused"] else { return nil }
    let words = pages.words(exchange)
    if let site = exchange.refusingSite(query["by"]) { return site.sentence(ofRefused: name, words) }
    return NextPage.sentence(ofRefused: name, words)
  }
}
