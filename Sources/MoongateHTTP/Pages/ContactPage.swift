import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// The page of a code provider for a signed-in user, before a code is sent. It asks for a new phone number or email
/// address, or offers to verify the existing one.
struct ContactPage: Sendable {
  let provider: ProviderPage
  let driver: FlowDriver
  let pages: PageRenderer

  private var path: String { provider.ownPath ?? ProviderPage.stepPath }
  private var isEmail: Bool { provider.isEmail }
  private var kind: IdentifierKind { isEmail ? .email : .phone }

  func show(_ query: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    guard query["flow"] != nil || exchange.generation.flow(for: .verify(kind)) != nil else {
      throw exchange.refusal(.flowNotFound)
    }
    guard let own = try await driver.session(exchange) else {
      return try exchange.redirectToSignIn(returnTo: exchange.request.head.path)
    }
    guard
      let definition = query["flow"].map({ exchange.generation.flows[$0] })
        ?? exchange.generation.flow(for: .verify(kind))
    else {
      throw exchange.refusal(.notFound)
    }
    let flow = definition.name
    let returnTo = exchange.targets.accept(query["return_to"])
    if definition.purpose == .verify(kind), own.account.identifier(kind)?.verifiedAt != nil {
      return exchange.redirect(to: returnTo ?? PagePath.account)
    }
    let refusal = try await driver.refusal(ofChange: flow, exchange)
    return page(flow: flow, nil, id: nil, returnTo: returnTo, own.account, typed: nil, refusal, exchange)
  }

  /// Shows a flow whose step could not be begun, or whose identifier is to be corrected.
  func show(_ view: FlowView, _ refusal: Refusal?, _ exchange: Exchange) async throws(Refusal) -> Response {
    let account = try await driver.session(exchange)?.account
    let invited = view.asks(for: kind) ? try await driver.invitation(exchange)?.identifier : nil
    let typed = invited.flatMap { $0.kind == kind ? $0.display : nil }
    if let refusal { exchange.log(refusal) }
    return page(flow: view.flow, view, id: view.id, returnTo: view.returnTo, account, typed: typed, refusal, exchange)
  }

  func send(_ exchange: Exchange) async throws(Refusal) -> Response {
    let sent = try await exchange.form()
    guard let flow = sent["flow"], exchange.generation.flows[flow] != nil else { throw exchange.refusal(.flowNotFound) }
    let returnTo = exchange.targets.accept(sent["return_to"])
    let own = try await driver.session(exchange)
    var inputs: [String: InputValue] = [:]
    let typed = sent["phone"] ?? sent["email"]
    let region = SignInForm.region(sent["region"])
    let id = sent["id"].map(FlowID.init(text:))
    let purpose = exchange.generation.purpose(of: flow)
    var view: FlowView?
    if purpose.registersFactor, let id {
      // A registration began on another page, so it cannot begin again here.
      let known = try await driver.view(id, exchange).get()
      guard known.status == .pending else { return exchange.redirect(to: exchange.address(of: known)) }
      view = known
    } else if !purpose.needsSession, let id, case .success(let known) = try await driver.view(id, exchange) {
      view = known
    }
    if try exchange.isSwitch {
      guard own != nil || view != nil else {
        return try exchange.redirectToSignIn(returnTo: returnTo)
      }
      return page(
        flow: flow, view, id: id, returnTo: returnTo, own?.account, typed: typed, region: region, nil, exchange)
    }
    if asks(purpose, own?.account, view) {
      inputs[provider.identifierField] = .text(typed ?? "")
      if let region = sent["region"] { inputs["region"] = .text(region) }
    }
    let steps = PageFlow(driver: driver)
    let outcome = await steps.begin(
      flow, id, provider.name.rawValue, inputs, returnTo: returnTo, exchange)
    switch outcome.result {
    case .success(let begun): return exchange.redirect(to: exchange.address(of: begun.view), outcome.cookies)
    case .failure(let refusal):
      guard refusal.code != .unauthenticated else {
        return try exchange.redirectToSignIn(returnTo: returnTo)
      }
      if let current = try await steps.currentCode(after: refusal, outcome, exchange) { return current }
      exchange.log(refusal)
      var response = page(
        flow: flow, view, id: outcome.id, returnTo: returnTo, own?.account, typed: typed, region: region, refusal,
        exchange)
      response.setCookies(outcome.cookies)
      return response
    }
  }

  /// Whether the flow asks for an identifier that the account does not have yet.
  /// - Parameter view: the flow, if it has begun without a session.
  private func asks(_ purpose: FlowPurpose, _ account: Account?, _ view: FlowView?) -> Bool {
    switch purpose {
    case .change, .join: true
    case .verify(let kind): account?.identifier(kind) == nil
    case .register, .signIn: view?.asks(for: kind) ?? false
    default: false
    }
  }

  /// More than five parameters: the values of the page that differ between requests.
  private func page(
    flow asked: String, _ view: FlowView?, id: FlowID?, returnTo: String?, _ account: Account?, typed: String?,
    region: String? = nil, _ refusal: Refusal?, _ exchange: Exchange
  ) -> Response {
    let words = pages.words(exchange).withTranslations(of: provider.descriptor.words)
    // An account without an address needs the flow that adds one.
    let isMissing = exchange.generation.purpose(of: asked) == .verify(kind) && account?.identifier(kind) == nil
    let flow = (isMissing ? exchange.generation.flow(for: .change(kind))?.name : nil) ?? asked
    let purpose = exchange.generation.purpose(of: flow)
    let asks = asks(purpose, account, view)
    let sentTo = asks ? nil : account?.identifier(kind)?.identifier.display
    let names: (String, String) =
      switch purpose {
      case .change(.phone): ("change_phone_title", "change_phone_subtitle")
      case .join: ("join_phone_title", "join_phone_subtitle")
      case .change where account?.identifier(.email) == nil: ("add_email_title", "add_email_subtitle")
      case .change: ("change_email_title", "change_email_subtitle")
      case .verify: ("verify_email", "verify_email_subtitle")
      case .register where asks, .signIn where asks:
        (isEmail ? "add_email_title" : "join_phone_title", "add_email_subtitle")
      default: ("confirm_title", sentTo == nil ? "confirm_other_subtitle" : "confirm_subtitle")
      }
    let problem = refusal.map { words.sentence(of: $0, failing: words["failed_to_send"], exchange) }
    // If a service behind the gateway requires the step, the page names the service.
    let isAsked = returnTo.map { !$0.hasPrefix("/auth/") } ?? false
    let reason = exchange.reason(for: purpose, returnTo: returnTo, words)
    let subtitle =
      isAsked && purpose == .verify(.email) && sentTo != nil
      ? words.text("needs_email", ["service": exchange.gateway.brand.name ?? exchange.gateway.service])
      : [reason, words[names.1]].compactMap(\.self).joined(separator: " ")
    let model = ContactModel(
      heading: words[names.0], subtitle: subtitle, sentTo: sentTo, asksPhone: asks && !isEmail,
      asksEmail: asks && isEmail, action: path,
      id: id?.secret.reveal(), flow: flow, returnTo: returnTo, typed: typed, region: region ?? exchange.gateway.region,
      callingCode: exchange.callingCode(region ?? exchange.gateway.region), problem: problem,
      isInvalid: [.invalidPhone, .invalidEmail].contains(refusal?.code), back: NextPage.back(returnTo),
      wait: refusal?.retryAfter.map(Countdown.init),
      waitLabel: words[refusal?.code == .resendTooSoon ? "resend_in" : "try_again_in"],
      confirms: StepUpRedirect.address(
        after: refusal, backTo: FormFields.address(path, ["flow": asked, "return_to": returnTo])),
      skip: view?.isSkippable ?? false ? FormFields.address(path, ["id": id?.secret.reveal()]) : nil,
      stressesSupport: false)
    // A flow that this request has begun has its own page only after a code was sent.
    let isBegun = exchange.request.method == .get || (exchange.request.head.path ?? "").contains("?")
    let own = FormFields.address(path, ["flow": asked, "return_to": returnTo])
    let address = isBegun ? nil : view == nil ? own : FormFields.address(path, ["id": id?.secret.reveal()])
    return pages.page(
      model, title: model.heading, of: provider.descriptor.words, refusal: refusal, at: address, isTypedInto: asks,
      exchange)
  }
}
