import Hummingbird
import MoongateCore
import MoongateSDK

/// The parts of `/auth/login` for known users: a new password after the code of a reset, and step-ups with a password
/// or another site.
struct PasswordForm: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer

  /// Whether a flow of a known user waits for a password.
  func isDue(in view: FlowView, _ exchange: Exchange) -> Bool {
    guard let due = due(in: view, exchange) else { return false }
    return due.isOnSignInPage && due.passwordField != nil
      && (view.isUnderWay || view.isByOperator || view.purpose.needsSession)
  }

  private func due(in view: FlowView, _ exchange: Exchange) -> ProviderPage? {
    view.due.flatMap(exchange.page(of:))
  }

  func show(_ view: FlowView, _ exchange: Exchange) async throws(Refusal) -> Response {
    page(
      ProofMethods(password: due(in: view, exchange), change: view.changeDue), id: view.id.secret.reveal(),
      flow: view.flow, returnTo: nil, nil,
      nil, exchange)
  }

  /// The proofs that this page can ask for.
  private struct ProofMethods {
    var password: ProviderPage?
    var sites: [ProviderPage] = []
    /// Why another password must be set; nil if it need not.
    var change: DueChange?
  }

  /// The page of a step-up with a password or another site; nil for a sign-in flow.
  /// - Throws: 403 if the account has none of the flow's providers on this page.
  func stepUp(_ name: String, _ account: Account, _ returnTo: String?, problem: String?, _ exchange: Exchange)
    throws(Refusal) -> Response?
  {
    guard let flow = exchange.generation.flows[name], flow.purpose.needsSession else { return nil }
    // The button on the account page connects a site.
    if flow.purpose.connectsSite { return exchange.redirect(to: PagePath.account) }
    let methods = methods(flow, account, exchange)
    if methods.password != nil || !methods.sites.isEmpty {
      return page(methods, id: nil, flow: name, returnTo: returnTo, problem, nil, exchange)
    }
    // The operator's flow begins with a code.
    for page in exchange.offered(first: name) where flow.purpose != .stepUp && page.sendsCodes {
      guard let path = page.ownPath, let kind = page.kind, account.identifier(kind)?.verifiedAt != nil else { continue }
      return exchange.redirect(to: FormFields.address(path, ["flow": name, "return_to": returnTo]))
    }
    throw exchange.refusal(.denied)
  }

  private func methods(_ flow: FlowDefinition, _ account: Account, _ exchange: Exchange) -> ProofMethods {
    let offered = exchange.offered(first: flow.name).filter(\.isOnSignInPage)
    let isElsewhere = account.identifiers.contains { $0.identifier.kind == .federated }
    return ProofMethods(
      password: offered.first { $0.passwordField != nil && account.credentials.contains($0.name) },
      sites: isElsewhere ? offered.filter { $0.siteButton != nil } : [])
  }

  /// Begins a step-up with another site.
  func leave(for site: ProviderPage, _ flow: String, returnTo: String?, _ exchange: Exchange) async throws(Refusal)
    -> Response
  {
    let outcome = await PageFlow(driver: driver).begin(flow, nil, site.name.rawValue, [:], returnTo: returnTo, exchange)
    switch outcome.result {
    case .success(let begun): return pages.continueFlow(on: begun.view, outcome.cookies, exchange)
    case .failure(let refusal):
      return try await refused(refusal, by: nil, id: nil, flow, returnTo, outcome.cookies, exchange)
    }
  }

  func judge(_ provider: ProviderPage, _ sent: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    let inputs: [String: InputValue] = [provider.passwordField ?? "": .text(sent["password"] ?? "")]
    let steps = PageFlow(driver: driver)
    let returnTo = exchange.targets.accept(sent["return_to"])
    let outcome: PageFlow.Outcome
    if let id = sent["id"] {
      outcome = await steps.prove(FlowID(text: id), provider.name.rawValue, inputs, exchange)
    } else {
      outcome = await steps.begin(
        sent["flow"] ?? exchange.generation.flowName(for: .stepUp), nil, provider.name.rawValue, inputs,
        returnTo: returnTo, exchange)
    }
    switch outcome.result {
    case .success(let driven): return exchange.redirect(to: exchange.address(of: driven.view), outcome.cookies)
    case .failure(let refusal):
      let flow =
        sent["flow"] ?? exchange.generation.flow(for: .factor(provider.name, .recover))?.name
        ?? exchange.generation.flowName(for: .stepUp)
      return try await refused(
        refusal, by: provider, id: outcome.id?.secret.reveal() ?? sent["id"], flow, returnTo, outcome.cookies, exchange)
    }
  }

  /// More than five parameters: the request that was refused.
  private func refused(
    _ refusal: Refusal, by provider: ProviderPage?, id: String?, _ flow: String, _ returnTo: String?,
    _ cookies: [String], _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    if let response = try exchange.responseWithoutForm(after: refusal, signIn: nil) { return response }
    var methods = ProofMethods(password: provider)
    if let definition = exchange.generation.flows[flow], definition.purpose.needsSession,
      let own = try await driver.session(exchange)
    {
      methods = self.methods(definition, own.account, exchange)
    }
    if let id, case .success(let view) = try await driver.view(FlowID(text: id), exchange) {
      methods.change = view.changeDue
    }
    let problem = pages.words(exchange).sentenceWithAttempts(of: refusal)
    var response = page(methods, id: id, flow: flow, returnTo: returnTo, problem, refusal, exchange)
    response.setCookies(cookies)
    return response
  }

  /// More than five parameters: the members of the page's model that differ between requests.
  private func page(
    _ methods: ProofMethods, id: String?, flow: String, returnTo: String?, _ problem: String?, _ refusal: Refusal?,
    _ exchange: Exchange
  ) -> Response {
    let words = pages.words(exchange)
    // An operator's link has the usual name of a reset, whether or not there is such a flow.
    let isNew =
      exchange.generation.purpose(of: flow).recoveredProvider != nil || methods.change != nil
      || methods.password.map { FlowPurpose.factor($0.name, .recover).usualName == flow } ?? false
    let model = PasswordModel(
      heading: words[isNew ? "new_password_title" : "confirm_title"],
      subtitle: words[
        isNew
          ? methods.change?.subtitle ?? "new_password_subtitle"
          : !methods.sites.isEmpty ? "confirm_other_subtitle" : "confirm_password_subtitle"],
      label: words[isNew ? "new_password" : "password"], button: words[isNew ? "save_password" : "continue"],
      autocomplete: isNew ? "new-password" : "current-password", asksPassword: methods.password != nil,
      provider: methods.password?.name.rawValue,
      sites: methods.sites.map { SiteButton($0, words) }, hasSites: !methods.sites.isEmpty, isNew: isNew, id: id,
      flow: flow, returnTo: returnTo, back: id == nil ? NextPage.back(returnTo) : nil, problem: problem,
      wait: refusal?.retryAfter.map(Countdown.init), stressesSupport: refusal?.code == .tooManyAttempts)
    let address = FormFields.address(
      PagePath.signIn, ["id": id, "flow": id == nil ? flow : nil, "return_to": returnTo])
    return pages.page(model, title: model.heading, refusal: refusal, at: address, exchange)
  }
}

extension DueChange {
  /// The name of the text that tells why another password is needed.
  fileprivate var subtitle: String {
    switch self {
    case .breached: "new_password_breached"
    case .weak: "new_password_weak"
    }
  }
}
