import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/step`: a step of a provider without its own page, with the provider's words and fields; and the choice
/// between providers. `?id=` names a flow under way, `?flow=` one that is begun here, with the provider in `with=`.
struct StepPage: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer
  let clock: any GatewayClock

  private static let path = PagePath.step

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, Self.path) { exchange throws(Refusal) in
        let query = try exchange.query()
        return try await show(query, typed: .empty, exchange)
      },
      Endpoint(.page, .post, Self.path) { exchange throws(Refusal) in
        if try exchange.isSwitch {
          return try await show(try exchange.query(), typed: try await exchange.form(), exchange)
        }
        return try await send(exchange)
      },
    ]
  }

  // MARK: showing

  private func show(_ query: FormFields, typed: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    guard let text = query["id"] else { return try await enter(query, typed, exchange) }
    let view = try await driver.view(FlowID(text: text), exchange).get()
    // Without scripts, the page reloads by itself. A HEAD request does not poll.
    if exchange.request.method == .get, let step = view.step, step.retryAfter == .zero, step.lockedUntil == nil {
      return try await poll(view, step, exchange)
    }
    return try await show(
      view, notice: query["sent"] == nil ? nil : "code_sent", refused: query["refused"], typed, nil, exchange)
  }

  /// Shows a flow that is not begun yet. If there is only one provider, its form is shown at once.
  private func enter(_ query: FormFields, _ typed: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    let name = query["flow"] ?? exchange.generation.flowName(for: .stepUp)
    guard let flow = exchange.generation.flows[name] else { throw exchange.refusal(.notFound) }
    let returnTo = exchange.targets.accept(query["return_to"])
    let account = try await driver.session(exchange)?.account
    let purpose = flow.purpose
    if !flow.needsSession(by: exchange.providers), account != nil, !SignInAgain.isMarked(returnTo) {
      return exchange.redirect(to: returnTo ?? flow.next.returning)
    }
    if let made = purpose.setProvider, account?.credentials.contains(made) ?? false,
      exchange.isOffer || !(exchange.page(of: made)?.keepsSeveral ?? false)
    {
      return exchange.redirect(to: returnTo ?? PagePath.account)
    }
    let choices: [ProviderName]
    let isForChange = query["for"] == StepUpRedirect.purpose
    switch await driver.engine.offers(name, forChange: isForChange, client: try await driver.caller(exchange)) {
    case .success(let offered): choices = offered
    case .failure(let refusal):
      let state = FlowState(flow: name, provider: exchange.isOffer ? purpose.setProvider : nil, returnTo: returnTo)
      return try await refused(refusal, state, typed, [], exchange)
    }
    let asked = query["with"].flatMap(ProviderName.init(rawValue:))
    let chosen = asked.flatMap { choices.contains($0) ? $0 : nil } ?? (choices.count == 1 ? choices[0] : nil)
    // Users without the factor are redirected to set one up, and return afterwards.
    if let wanted = asked ?? chosen, let account, purpose.step(of: wanted) == .prove,
      !account.credentials.contains(wanted),
      flow.steps.first?.choices.contains(wanted) ?? false, exchange.page(of: wanted)?.isOnStepPage ?? false,
      let making = exchange.generation.flow(for: .factor(wanted, .set))
    {
      let back = ProviderPage.stepAddress(name, with: wanted, returnTo: returnTo)
      return exchange.redirect(to: ProviderPage.stepAddress(making.name, with: nil, returnTo: back))
    }
    if let page = chosen.flatMap(exchange.page(of:)).flatMap({ ownPage(of: $0, in: flow, exchange) }) {
      return exchange.redirect(
        to: exchange.keepingOffer(FormFields.address(page, ["flow": name, "return_to": returnTo])))
    }
    var form = StepForm(
      flow: name, purpose: purpose, returnTo: returnTo, provider: chosen, choices: chosen == nil ? choices : [])
    form.refused = query["refused"]
    form.isForChange = isForChange
    form.isRemembered = remembered(typed, flow, exchange)
    form.typed = typed
    if let item = query[HeldItem.field.name], let chosen, [.change, .disable].contains(purpose.step(of: chosen)) {
      // The item was removed meanwhile, in another tab or elsewhere.
      guard let held = try await held(item, of: chosen, exchange) else {
        return exchange.redirect(to: PagePath.account(done: "gone"))
      }
      form.item = held
    }
    return page(form, nil, exchange)
  }

  /// An item that a provider stores for the session's account; nil if it does not exist.
  private func held(_ item: String, of provider: ProviderName, _ exchange: Exchange) async throws(Refusal) -> HeldItem?
  {
    let holdings = try await driver.engine.holdings(client: try await driver.caller(exchange)).get()
    return holdings[provider]?.first { $0.id == item }
  }

  /// The page on which the provider's step of the flow begins; nil if it is this page.
  private func ownPage(of page: ProviderPage, in flow: FlowDefinition, _ exchange: Exchange) -> String? {
    if page.isOnSignInPage { return PagePath.signIn }
    guard page.sendsCodes, !flow.needsSession(by: exchange.providers) else { return page.ownPath }
    // The sign-in page asks for the identifier if this provider has its field there; otherwise, this page does.
    guard case .field(let kind, _)? = page.descriptor.entrance else { return nil }
    let takesField =
      ProviderPage.accepting(kind, of: exchange.offered(first: flow.name).filter(\.sendsCodes))?.name == page.name
    return takesField ? NextPage.page(of: flow.purpose, flow.name) : nil
  }

  /// Whether the next step of the flow is shown here.
  private func shows(_ view: FlowView, _ exchange: Exchange) -> Bool {
    view.status == .pending && exchange.address(of: view).hasPrefix(Self.path + "?")
  }

  /// More than five parameters: the members of the form that differ between requests.
  /// - Parameter chosen: the provider whose form is shown, of several that can be begun.
  private func show(
    _ view: FlowView, notice: String?, refused: String? = nil, as chosen: ProviderName? = nil, _ typed: FormFields,
    _ refusal: Refusal?,
    _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    guard shows(view, exchange) || chosen != nil else { return exchange.redirect(to: exchange.address(of: view)) }
    var form = StepForm(
      flow: view.flow, purpose: view.purpose, returnTo: view.returnTo, provider: view.step?.provider,
      choices: view.choices)
    if view.step == nil, let only = chosen ?? view.due { (form.provider, form.choices) = (only, []) }
    form.id = view.id.secret.reveal()
    form.step = view.step
    form.isFirst = !view.isUnderWay
    form.asksRecipient = form.provider.flatMap(exchange.page(of:))?.kind.map(view.asks(for:)) ?? false
    form.canSkip = form.asksRecipient && view.isSkippable
    // A form that was sent counts, although its request was refused and changed nothing.
    let choice = typed.names.isEmpty ? view.isRemembered : typed["remember"] != nil
    form.isRemembered = asksToRemember(view) ? choice : nil
    form.isEnrolling = view.isEnrolling
    form.notice = notice
    form.refused = refused
    form.typed = typed
    return page(form, refusal, exchange)
  }

  /// Whether the form asks if the user stays signed in: only before the first step has passed.
  private func asksToRemember(_ view: FlowView) -> Bool { view.isRemembered != nil && !view.isUnderWay }

  /// The user's choice in a form of a flow that is not begun yet; nil if the flow does not offer to stay signed in.
  private func remembered(_ typed: FormFields, _ flow: FlowDefinition, _ exchange: Exchange) -> Bool? {
    flow.offersRemembering(by: exchange.providers) ? typed["remember"] != nil : nil
  }

  // MARK: waiting

  /// Polls a waiting step.
  private func poll(_ view: FlowView, _ step: StepView, _ exchange: Exchange) async throws(Refusal) -> Response {
    let outcome = await PageFlow(driver: driver).prove(view.id, step.provider.rawValue, [:], exchange)
    do throws(Refusal) {
      let driven = try outcome.result.get()
      // Shows the same page again. A script reads the next polling time from it; without scripts, the page reloads.
      guard driven.view.step?.retryAfter != nil, exchange.isScripted || exchange.request.method == .get else {
        return continueFlow(driven, outcome.cookies, exchange)
      }
      var response = try await show(driven.view, notice: nil, .empty, nil, exchange)
      response.setCookies(outcome.cookies)
      return response
    } catch {
      let state = FlowState(id: view.id, flow: view.flow, provider: step.provider, returnTo: view.returnTo)
      return try await refused(error, state, .empty, [], exchange)
    }
  }

  // MARK: sending

  /// The flow that a form belongs to.
  private struct FlowState {
    var id: FlowID?
    let flow: String
    var provider: ProviderName?
    let returnTo: String?
    /// The browser that the flow is bound to, if it does not have its cookie yet.
    var browser: TokenHash?
  }

  private func send(_ exchange: Exchange) async throws(Refusal) -> Response {
    let sent = try await exchange.form()
    guard let id = sent["id"].map(FlowID.init(text:)) else { return try await begin(sent, exchange) }
    let view = try await driver.view(id, exchange).get()
    let named = sent["with"].flatMap(ProviderName.init(rawValue:))
    // While a step waits, the user may switch to another provider.
    let other = named.flatMap { view.step?.alternatives.contains($0) ?? false ? $0 : nil }
    if let step = view.step, step.retryAfter != nil, other == nil, sent["action"] != "skip" {
      return try await poll(view, step, exchange)
    }
    let provider = other ?? view.step?.provider ?? named ?? view.due
    let state = FlowState(id: id, flow: view.flow, provider: provider, returnTo: view.returnTo)
    let steps = PageFlow(driver: driver, remember: asksToRemember(view) ? sent["remember"] != nil : nil)
    do throws(Refusal) {
      switch sent["action"] {
      case "resend":
        let driven = try await driver.drive(exchange) { engine, client in await engine.resend(id, client: client) }
        return exchange.redirect(
          to: FormFields.address(Self.path, ["id": id.secret.reveal(), "sent": "1"]), driven.cookies)
      case "skip":
        let driven = try await driver.drive(exchange) { engine, client in await engine.skip(id, client: client) }
        let next = await steps.beginDueSteps(driven, exchange)
        return continueFlow(next, next.cookies, exchange)
      default: break
      }
      guard let provider else { throw exchange.refusal(.stepNotOpen) }
      let outcome = await steps.prove(id, provider.rawValue, inputs(sent, provider, view.step, exchange), exchange)
      return continueFlow(try outcome.result.get(), outcome.cookies, exchange)
    } catch {
      return try await refused(error, state, sent, [], exchange)
    }
  }

  /// Begins a flow, and submits the input that was typed.
  private func begin(_ sent: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    guard let flow = sent["flow"], let definition = exchange.generation.flows[flow] else {
      throw exchange.refusal(.flowNotFound)
    }
    let first = definition.steps.first?.choices ?? []
    guard let provider = sent["with"].flatMap(ProviderName.init(rawValue:)) ?? first.first, first.contains(provider)
    else {
      throw exchange.refusal(.stepNotOpen)
    }
    var state = FlowState(flow: flow, provider: provider, returnTo: exchange.targets.accept(sent["return_to"]))
    let inputs = inputs(sent, provider, nil, exchange)
    let steps = PageFlow(driver: driver, remember: remembered(sent, definition, exchange))
    let begun = await steps.begin(flow, nil, provider.rawValue, inputs, returnTo: state.returnTo, exchange)
    state.id = begun.id
    state.browser = exchange.credentials.browser == nil ? begun.browser : nil
    do throws(Refusal) {
      let driven = try begun.result.get()
      // `begin` does not check optional fields, so the same input is submitted now.
      if !inputs.isEmpty, let step = driven.view.step, step.provider == provider, step.redirectTo == nil,
        step.sentTo == nil, !step.fields.isEmpty,
        step.fields.allSatisfy({ !$0.isRequired }), Set(inputs.keys).isSubset(of: step.fields.map(\.name))
      {
        let id = driven.view.id
        var judged = try await driver.drive(exchange, as: driven) { engine, client in
          await engine.submit(id, fields: inputs, client: client)
        }
        judged.browser = driven.browser
        let next = await steps.beginDueSteps(judged, exchange)
        return continueFlow(next, begun.cookies + next.cookies, exchange)
      }
      return continueFlow(driven, begun.cookies, exchange)
    } catch {
      return try await refused(error, state, sent, begun.cookies, exchange)
    }
  }

  /// The input in the provider's fields. Their names have a prefix in the form, so that they cannot collide with the
  /// page's own fields.
  private func inputs(_ sent: FormFields, _ provider: ProviderName, _ step: StepView?, _ exchange: Exchange) -> [String:
    InputValue]
  {
    let descriptor = exchange.providers[provider]?.descriptor
    let names =
      (step?.fields ?? []).map(\.name) + (descriptor?.beginFields ?? []).map(\.name)
      + (descriptor?.submitFields ?? []).map(\.name)
    return Dictionary(names.compactMap { name in sent[StepForm.prefix + name].map { (name, .text($0)) } }) { first, _ in
      first
    }
  }

  /// Continues with the next step: another site, or a page.
  private func continueFlow(_ driven: FlowDriver.Outcome, _ cookies: [String], _ exchange: Exchange) -> Response {
    guard exchange.isOffer, driven.view.status == .pending, driven.view.step?.redirectTo == nil else {
      return pages.continueFlow(on: driven.view, cookies, exchange)
    }
    return exchange.redirect(to: exchange.keepingOffer(exchange.address(of: driven.view)), cookies)
  }

  private func refused(
    _ refusal: Refusal, _ state: FlowState, _ typed: FormFields, _ cookies: [String], _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    let back =
      state.id == nil
      ? ProviderPage.stepAddress(state.flow, with: state.provider, returnTo: state.returnTo) : state.returnTo
    let signIn = FormFields.address(PagePath.signIn, ["return_to": back])
    if let response = try exchange.responseWithoutForm(after: refusal, signIn: signIn) { return response }
    var response: Response
    if let id = state.id,
      case .success(let view) = try await driver.view(id, in: state.browser, exchange),
      state.browser == nil || view.step != nil
    {
      // Another request has completed the flow meanwhile, or it continues elsewhere, so there is no form for the
      // message. A waiting step that was refused may be begun again here.
      let again = state.provider.flatMap {
        view.choices.contains($0) && exchange.page(of: $0)?.isOnStepPage ?? false ? $0 : nil
      }
      let isHere = shows(view, exchange)
      guard isHere || again != nil else { throw refusal }
      response = try await show(view, notice: nil, as: isHere ? nil : again, typed, refusal, exchange)
    } else {
      var form = StepForm(
        flow: state.flow, purpose: exchange.generation.purpose(of: state.flow), returnTo: state.returnTo,
        provider: state.provider, choices: [])
      form.isRemembered = exchange.generation.flows[state.flow].flatMap { remembered(typed, $0, exchange) }
      form.typed = typed
      response = page(form, refusal, exchange)
    }
    response.setCookies(cookies)
    return response
  }

  /// The page for users who have lost the factor of a session's flow: the flow that resets it. That flow requires
  /// another proof; the link itself opens nothing.
  private func lost(_ page: ProviderPage, _ form: StepForm, _ exchange: Exchange) -> String? {
    let purpose = form.flowPurpose
    switch purpose {
    case .factor(page.name, .change), .factor(page.name, .disable): break
    default: guard purpose.isProofAlone, purpose.needsSession, form.purpose(of: page.name) == .prove else { return nil }
    }
    // Fields after a successful proof, such as a name, do not offer this link.
    let isProved = page.ceremonyButton != nil && form.step?.fields.contains { $0.kind == .json } == false
    guard !isProved, let reset = exchange.generation.flow(for: .factor(page.name, .reset))?.name,
      !exchange.offered(first: reset).isEmpty
    else {
      return nil
    }
    let back = purpose.isProofAlone ? form.returnTo : PagePath.account(done: reset)
    return ProviderPage.stepAddress(reset, with: nil, returnTo: back)
  }

  private func page(_ form: StepForm, _ refusal: Refusal?, _ exchange: Exchange) -> Response {
    let words = pages.words(exchange)
    let provider = form.provider.flatMap(exchange.page(of:))
    var form = form
    form.reason = exchange.reason(for: form.flowPurpose, returnTo: form.returnTo, words)
    form.skip = exchange.skipping(form.flowPurpose, form.flow, to: form.returnTo)
    form.lost = provider.flatMap { lost($0, form, exchange) }
    // Users who do not use the ceremony enter the PIN of the account.
    if provider?.ceremonyButton != nil, form.isFirst, form.flowPurpose.needsSession,
      let pad = form.step?.alternatives.compactMap(exchange.page(of:)).first(where: { $0.pad != nil }),
      let path = pad.ownPath
    {
      form.pad = (
        words.text("use_other", ["name": pad.shortName(words)]),
        PINPage.address(path, byHand: form.flow, returnTo: form.returnTo)
      )
    }
    let told = form.refused.flatMap { provider?.sentence(ofRefused: $0, words) == nil ? nil : $0 }
    let here = exchange.keepingOffer(
      form.id.map { FormFields.address(Self.path, ["id": $0, "refused": told]) }
        ?? (form.isForChange
          ? StepUpRedirect.address(of: form.flow, backTo: form.returnTo)
          : ProviderPage.stepAddress(
            form.flow, with: form.provider, returnTo: form.returnTo, refused: told, about: form.item?.id)))
    if let step = form.step, let wait = step.retryAfter, step.lockedUntil == nil, refusal == nil {
      let others =
        form.isFirst && !form.flowPurpose.needsSession ? [] : step.alternatives.compactMap(exchange.page(of:))
      let model = WaitModel(form, step, wait: wait, provider, others: others, words, here: here)
      return pages.page(model, title: model.heading, of: provider?.descriptor.words, at: here, exchange)
    }
    let model = StepModel(
      form, refusal, provider, choices: form.choices.map { ($0, exchange.page(of: $0)) }, words, now: clock.now(),
      here: here)
    return pages.page(
      model, title: model.heading, of: provider?.descriptor.words, refusal: refusal, at: here,
      isTypedInto: model.confirms == nil, exchange)
  }
}
