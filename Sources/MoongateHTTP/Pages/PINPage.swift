import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// The page of a provider with a PIN pad, such as `/auth/pin`: unlocking, and setting, changing, resetting and
/// disabling a passcode. The flow's purpose decides which.
struct PINPage: Sendable {
  let page: ProviderPage
  let driver: FlowDriver
  let pages: PageRenderer
  let clock: any GatewayClock

  var provider: ProviderName { page.name }
  private var path: String { page.ownPath ?? ProviderPage.stepPath }
  /// The field names of the current and the new secret.
  var current: String { page.pad?.current ?? "" }
  private var new: String { page.pad?.new ?? "" }

  /// The input that the page asks for.
  enum Task: Sendable {
    case create, change, unlock, disable
    /// The code, the new passcode and its repetition.
    case reset
    /// The new passcode after the code was accepted and the first choice was refused.
    case resetAfterCode
    /// Before a code was sent.
    case forgotten

    /// The names of the texts of its heading and its button.
    var texts: (heading: String, button: String) {
      switch self {
      case .create: ("set_passcode", "save_passcode")
      case .change: ("change_passcode", "save_passcode")
      case .unlock: ("enter_passcode", "unlock")
      case .disable: ("disable_passcode", "turn_off")
      case .reset, .resetAfterCode: ("reset_passcode", "save_passcode")
      case .forgotten: ("forgot_passcode", "continue")
      }
    }
  }

  // MARK: showing

  func show(_ exchange: Exchange) async throws(Refusal) -> Response {
    let query = try exchange.query()
    let returnTo = exchange.targets.accept(query["return_to"])
    if let text = query["id"] {
      let view = try await driver.view(FlowID(text: text), exchange).get()
      guard view.status == .pending else { return exchange.redirect(to: view.next ?? "/") }
      guard let task = task(of: view) else { return exchange.redirect(to: exchange.address(of: view)) }
      let notice = task == .reset && query["sent"] != nil ? "code_sent" : nil
      return try await page(task, flow: view.flow, view: view, returnTo: view.returnTo, nil, notice: notice, exchange)
    }
    guard let own = try await driver.session(exchange) else {
      return try exchange.redirectToSignIn(returnTo: exchange.request.head.path)
    }
    guard
      let definition = query["flow"].map({ exchange.generation.flows[$0] })
        ?? exchange.generation.flow(for: .factor(provider, .unlock))
    else {
      throw exchange.refusal(.notFound)
    }
    let flow = definition.name
    let purpose = definition.purpose
    let hasPIN = own.account.credentials.contains(provider)
    // Users without a factor are redirected to set one up, and return afterwards.
    let making = exchange.generation.flow(for: .factor(provider, .set))
    if !hasPIN, purpose.setProvider != provider, let making {
      return exchange.redirect(to: FormFields.address(path, ["flow": making.name, "return_to": returnTo]))
    }
    if hasPIN, purpose.setProvider == provider { return exchange.redirect(to: returnTo ?? PagePath.account) }
    if purpose.resetProvider == provider {
      return try await page(.forgotten, flow: flow, view: nil, returnTo: returnTo, nil, exchange)
    }
    guard definition.steps.first?.choices.contains(provider) ?? false else {
      // The flow begins with another step.
      return exchange.redirect(to: FormFields.address(PagePath.signIn, ["flow": flow, "return_to": returnTo]))
    }
    var refusal = try await driver.refusal(ofChange: flow, exchange)
    if refusal == nil { refusal = try await lock(in: flow, purpose, exchange) }
    return try await page(self.task(of: purpose), flow: flow, view: nil, returnTo: returnTo, refusal, exchange)
  }

  private func task(of purpose: FlowPurpose) -> Task {
    switch purpose {
    case .factor(provider, .set): .create
    case .factor(provider, .change): .change
    case .factor(provider, .disable): .disable
    case .factor(provider, .reset): .forgotten
    default: .unlock
    }
  }

  /// The task of a flow under way; nil if its current step belongs to another page.
  private func task(of view: FlowView) -> Task? {
    if view.purpose.resetProvider == provider {
      if view.due == provider { return .resetAfterCode }
      return view.step == nil ? .forgotten : .reset
    }
    guard view.due == provider else { return nil }
    return view.isEnrolling ? .create : self.task(of: view.purpose)
  }

  /// The address for users who do not use the ceremony: the page does not start it automatically again.
  static func address(_ path: String, byHand flow: String, returnTo: String?) -> String {
    FormFields.address(path, ["flow": flow, "return_to": returnTo, "by": "hand"])
  }

  /// A ceremony that the flow accepts instead of the digits, if the account has one.
  private func alternative(_ flow: String, isAutomatic: Bool, _ words: Words, _ exchange: Exchange)
    async throws(Refusal)
    -> PINModel.Alternative?
  {
    guard let account = try await driver.session(exchange)?.account else { return nil }
    let found = exchange.offered(first: flow).first {
      $0.ceremonyButton != nil && account.credentials.contains($0.name)
    }
    guard let found, let button = found.ceremonyButton else { return nil }
    let isByHand = try exchange.query()["by"] != nil
    return PINModel.Alternative(
      provider: found.name.rawValue, label: words.withTranslations(of: found.descriptor.words).translated(button),
      isAutomatic: isAutomatic && !isByHand)
  }

  // MARK: sending

  func send(_ exchange: Exchange) async throws(Refusal) -> Response {
    let sent = try await exchange.form()
    let returnTo = exchange.targets.accept(sent["return_to"])
    guard
      let definition = sent["flow"].map({ exchange.generation.flows[$0] })
        ?? exchange.generation.flow(for: .factor(provider, .unlock))
    else {
      throw exchange.refusal(.notFound)
    }
    let (flow, purpose) = (definition.name, definition.purpose)
    let id = sent["id"].map(FlowID.init(text:))
    let steps = PageFlow(driver: driver)
    if purpose.resetProvider == provider {
      if sent["action"] == "resend", let id { return try await resend(sent, flow, id, returnTo, exchange) }
      if sent["action"] == "send" { return try await sendReset(sent, flow, returnTo, exchange) }
    }
    var inputs: [String: InputValue] = [:]
    for name in [current, new, "code"] { if let text = sent[name] { inputs[name] = .text(text) } }
    if sent["check"] != nil { return try await checkCurrent(sent, flow, returnTo, exchange) }
    if sent["confirm"] != sent[new] {
      return try await refused(exchange.refusal(.pinMismatch, field: "confirm"), sent, flow, id, returnTo, [], exchange)
    }
    let outcome: PageFlow.Outcome
    if let id {
      let open =
        sent["code"] == nil
        ? nil : try await driver.view(id, exchange).get().step?.provider
      outcome = await steps.prove(id, (open ?? provider).rawValue, inputs, exchange)
    } else {
      outcome = await steps.begin(flow, nil, provider.rawValue, inputs, returnTo: returnTo, exchange)
    }
    switch outcome.result {
    case .success(let driven):
      let unlocked = sent[new] == nil ? nil : await unlock(with: inputs[new], after: driven, exchange)
      let cookies =
        unlocked.map { fresh in outcome.cookies.filter { !driven.cookies.contains($0) } + fresh } ?? outcome.cookies
      return exchange.redirect(to: exchange.address(of: driven.view), cookies)
    // A flow that is begun anew for each attempt does not have to be kept.
    case .failure(let refusal): return try await refused(refusal, sent, flow, id, returnTo, outcome.cookies, exchange)
    }
  }

  /// Sends another code of a reset.
  private func resend(_ sent: FormFields, _ flow: String, _ id: FlowID, _ returnTo: String?, _ exchange: Exchange)
    async throws(Refusal) -> Response
  {
    do throws(Refusal) {
      _ = try await driver.drive(exchange) { engine, client in await engine.resend(id, client: client) }
      return exchange.redirect(to: FormFields.address(path, ["id": sent["id"], "sent": "1"]))
    } catch {
      return try await refused(error, sent, flow, id, returnTo, [], exchange)
    }
  }

  /// Verifies the current passcode before the page asks for a new one. It is verified and counted like unlocking.
  private func checkCurrent(_ sent: FormFields, _ flow: String, _ returnTo: String?, _ exchange: Exchange)
    async throws(Refusal) -> Response
  {
    let unlocking = exchange.generation.flow(for: .factor(provider, .unlock))?.name ?? flow
    let outcome = await PageFlow(driver: driver).begin(
      unlocking, nil, provider.rawValue, [current: .text(sent[current] ?? "")], returnTo: nil, exchange)
    switch outcome.result {
    case .success:
      var response = Response.json(.members(["right": .flag(true)]))
      response.setCookies(outcome.cookies)
      return response
    case .failure(let refusal):
      return try await refused(refusal, sent, flow, nil, returnTo, outcome.cookies, exchange)
    }
  }

  /// Sends the code of a reset: to the verified email address, or else to the phone.
  private func sendReset(_ sent: FormFields, _ flow: String, _ returnTo: String?, _ exchange: Exchange)
    async throws(Refusal) -> Response
  {
    guard let sender = try await sender(exchange) else { throw exchange.refusal(.denied) }
    let outcome = await PageFlow(driver: driver).begin(
      flow, nil, sender.name.rawValue, [:], returnTo: returnTo, exchange)
    switch outcome.result {
    case .success(let begun): return exchange.redirect(to: exchange.address(of: begun.view), outcome.cookies)
    case .failure(let refusal): return try await refused(refusal, sent, flow, nil, returnTo, outcome.cookies, exchange)
    }
  }

  /// The provider that sends the code of a reset: by mail if the account has a verified address that is not too new, or
  /// else the first that can send one.
  private func sender(_ exchange: Exchange) async throws(Refusal) -> ProviderPage? {
    guard let reset = exchange.generation.flow(for: .factor(provider, .reset)) else { return nil }
    let offered = try? await driver.engine.offers(reset.name, client: try await driver.caller(exchange)).get()
    let senders = { (names: [ProviderName]) in names.compactMap(exchange.page(of:)).filter(\.sendsCodes) }
    let open = senders(offered ?? [])
    // If no provider is available, the engine's refusal explains why.
    return open.first(where: \.isEmail) ?? open.first ?? senders(reset.steps.first?.choices ?? []).first { !$0.isEmail }
      ?? senders(reset.steps.first?.choices ?? []).first
  }

  /// More than five parameters: the request that was refused.
  private func refused(
    _ refusal: Refusal, _ sent: FormFields, _ flow: String, _ id: FlowID?, _ returnTo: String?, _ cookies: [String],
    _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    let signIn = FormFields.address(PagePath.signIn, ["return_to": returnTo])
    if let response = try exchange.responseWithoutForm(after: refusal, signIn: signIn) { return response }
    var view: FlowView?
    if let id { view = try? await driver.view(id, exchange).get() }
    let task = view.flatMap { self.task(of: $0) } ?? self.task(of: exchange.generation.purpose(of: flow))
    var response = try await page(task, flow: flow, view: view, returnTo: returnTo, refusal, exchange)
    response.setCookies(cookies)
    return response
  }

  // MARK: the page

  private func fields(of task: Task, byEmail: Bool, codeLength: Int, _ words: Words) -> [PINModel.Field] {
    let field = { (name: String, label: String, autocomplete: String) in
      PINModel.Field(
        name: name, label: words[label], autocomplete: autocomplete, isSecret: name != "code",
        length: name == "code" ? codeLength : page.pad?.count ?? 6)
    }
    let known = field(current, task == .unlock ? "enter_passcode" : "enter_current_passcode", "current-password")
    let isNew = task == .create
    let chosen = field(new, isNew ? "create_a_passcode" : "enter_new_passcode", "new-password")
    let again = field("confirm", isNew ? "confirm_passcode" : "confirm_new_passcode", "new-password")
    return switch task {
    case .create, .resetAfterCode: [chosen, again]
    case .change: [known, chosen, again]
    case .unlock, .disable: [known]
    case .reset:
      [field("code", byEmail ? "enter_reset_code" : "enter_reset_code_phone", "one-time-code"), chosen, again]
    case .forgotten: []
    }
  }

  /// More than five parameters: the values of the page that differ between requests.
  private func page(
    _ task: Task, flow: String, view: FlowView?, returnTo: String?, _ refusal: Refusal?, notice: String? = nil,
    _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    let words = pages.words(exchange).withTranslations(of: page.descriptor.words)
    let reset = exchange.generation.flow(for: .factor(provider, .reset))
    let account = try await driver.session(exchange)?.account
    let isSignedIn = account != nil
    let byEmail: Bool
    if let step = view?.step {
      byEmail = exchange.page(of: step.provider)?.isEmail ?? false
    } else {
      byEmail = try await sender(exchange)?.isEmail ?? false
    }
    let codeLength = view?.step?.fields.first { $0.name == "code" }?.length ?? 6
    let isLocked = refusal?.code == .tooManyAttempts || refusal?.code == .disabled
    var problem = refusal.map { words.sentenceWithAttempts(of: $0) }
    let isTooSoon = refusal?.code == .resendTooSoon
    if isTooSoon { problem = words.translated(RefusalCode.resendTooSoon.sentence) }
    let id = view?.id.secret.reveal()
    let now = clock.now()
    let here = exchange.keepingOffer(
      FormFields.address(path, ["id": id, "flow": id == nil ? flow : nil, "return_to": returnTo]))
    let skip =
      task == .create && view == nil
      ? exchange.skipping(exchange.generation.purpose(of: flow), flow, to: returnTo) : nil
    let model = PINModel(
      heading: page.descriptor.title.map(words.translated) ?? words[task.texts.heading],
      reason: exchange.reason(for: exchange.generation.purpose(of: flow), returnTo: returnTo, words),
      // Attack: a user signs in at a browser in which another user's session is active. The passcode must not be shown
      // as that user's.
      whose: task == .unlock && exchange.generation.purpose(of: flow).needsSession ? account?.hint : nil,
      // What an app only would like can be declined, and the lock has no way past it.
      isLock: task == .unlock && !WishedStep.isMarked(returnTo),
      isForgotten: task == .forgotten,
      forgotMessage: words[byEmail ? "forgot_message" : "forgot_message_phone"],
      forgotButton: words[byEmail ? "send_reset_email" : "send_reset_code"],
      // A user without a session cannot reset a passcode.
      canForget: isSignedIn && task != .create && reset != nil && task != .reset && task != .resetAfterCode,
      fields: fields(of: task, byEmail: byEmail, codeLength: codeLength, words),
      button: words[task.texts.button], action: skip == nil ? path : exchange.keepingOffer(path), id: id, flow: flow,
      returnTo: returnTo,
      back: NextPage.back(returnTo),
      forgot: FormFields.address(path, ["flow": reset?.name, "return_to": returnTo]), here: here,
      sentTo: view?.step?.sentTo,
      state: refusal == nil ? "open" : isLocked ? "locked" : "wrong", notice: notice.map { words[$0] },
      problem: problem, code: refusal?.code.name,
      wait: isLocked || isTooSoon ? refusal?.retryAfter.map(Countdown.init) : nil,
      waitLabel: words[isTooSoon ? "resend_in" : "try_again_in"],
      resend: view?.step?.resendAt.flatMap { now < $0 ? Countdown($0 - now) : nil },
      then: isTooSoon ? "enable" : "reload",
      confirms: StepUpRedirect.address(
        after: refusal, backTo: exchange.keepingOffer(FormFields.address(path, ["flow": flow, "return_to": returnTo]))),
      checks: task == .change && exchange.generation.flow(for: .factor(provider, .unlock)) != nil, current: current,
      new: new, resetFlow: reset?.name,
      instead: task == .unlock && view == nil
        ? try await alternative(flow, isAutomatic: refusal == nil, words, exchange) : nil,
      skip: skip, isOff: isLocked, stressesSupport: isLocked)
    return pages.page(
      model, title: model.heading, of: page.descriptor.words, refusal: refusal, at: here, exchange)
  }
}
