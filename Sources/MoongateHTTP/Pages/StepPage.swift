import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/step`: a step of any provider without a page of its own, in the words and fields that it brings; and, where a
/// flow leaves a choice, the ways that there are. `?id=` is a flow under way, `?flow=` one that is begun here (`with=`
/// names the provider).
struct StepPage: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer
  let clock: any GatewayClock

  private static let path = "/auth/step"

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
    let view = try await driver.engine.view(FlowID(text: text), client: try await driver.caller(exchange)).get()
    // Without scripts the page comes back by itself. A look ahead (HEAD) polls nothing.
    if exchange.request.method == .get, let step = view.step, step.retryAfter == .zero, step.lockedUntil == nil {
      return try await poll(view, step, exchange)
    }
    return try await show(
      view, notice: query["sent"] == nil ? nil : "code_sent", refused: query["refused"], typed, nil, exchange)
  }

  /// A flow that is not begun yet: straight to what it asks for, where that is one thing.
  private func enter(_ query: FormFields, _ typed: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    let name = query["flow"] ?? "step_up"
    guard let flow = exchange.generation.flows[name] else { throw exchange.refusal(.notFound) }
    let returnTo = exchange.targets.accept(query["return_to"])
    let account = try await driver.session(exchange)?.account
    let purpose = flow.purpose
    if !flow.needsSession(by: exchange.providers), account != nil {
      return exchange.leadOn(to: returnTo ?? flow.next.returning)
    }
    if let made = purpose.setProvider, account?.credentials.contains(made) ?? false,
      exchange.isOffer || !(exchange.page(of: made)?.keepsSeveral ?? false)
    {
      return exchange.leadOn(to: returnTo ?? "/auth/account")
    }
    let choices: [ProviderName]
    let isForChange = query["for"] == ChangeProof.purpose
    switch await driver.engine.offers(name, forChange: isForChange, client: try await driver.caller(exchange)) {
    case .success(let offered): choices = offered
    case .failure(let refusal):
      let state = FlowState(flow: name, provider: exchange.isOffer ? purpose.setProvider : nil, returnTo: returnTo)
      return try await refused(refusal, state, typed, [], exchange)
    }
    let asked = query["with"].flatMap(ProviderName.init(rawValue:))
    let chosen = asked.flatMap { choices.contains($0) ? $0 : nil } ?? (choices.count == 1 ? choices[0] : nil)
    // Who has none of what is asked for is led to make one, and comes back.
    if let wanted = asked ?? chosen, let account, purpose.step(of: wanted) == .prove,
      !account.credentials.contains(wanted),
      flow.steps.first?.choices.contains(wanted) ?? false, exchange.page(of: wanted)?.isOnStepPage ?? false,
      let making = exchange.generation.flow(for: .factor(wanted, .set))
    {
      let back = ProviderPage.stepAddress(name, with: wanted, returnTo: returnTo)
      return exchange.leadOn(to: ProviderPage.stepAddress(making.name, with: nil, returnTo: back))
    }
    if let page = chosen.flatMap(exchange.page(of:)).flatMap({ ownPage(of: $0, in: flow, exchange) }) {
      return exchange.leadOn(
        to: exchange.keepingOffer(FormFields.address(page, ["flow": name, "return_to": returnTo])))
    }
    var form = StepForm(
      flow: name, purpose: purpose, returnTo: returnTo, provider: chosen, choices: chosen == nil ? choices : [])
    form.refused = query["refused"]
    form.isForChange = isForChange
    form.typed = typed
    if let item = query[HeldItem.field.name], let chosen, [.change, .disable].contains(purpose.step(of: chosen)) {
      // Somebody has removed it meanwhile: in another tab, or elsewhere.
      guard let held = try await held(item, of: chosen, exchange) else {
        return exchange.leadOn(to: "/auth/account?done=gone")
      }
      form.item = held
    }
    return page(form, nil, exchange)
  }

  /// One of the things that a provider keeps for the account of the session; nil where it is not there.
  private func held(_ item: String, of provider: ProviderName, _ exchange: Exchange) async throws(Refusal) -> HeldItem?
  {
    let holdings = try await driver.engine.holdings(client: try await driver.caller(exchange)).get()
    return holdings[provider]?.first { $0.id == item }
  }

  /// The page on which the provider's step of the flow begins, where that is not this one.
  private func ownPage(of page: ProviderPage, in flow: FlowDefinition, _ exchange: Exchange) -> String? {
    if page.isOnEntrance { return "/auth/login" }
    guard page.sendsCodes, !flow.needsSession(by: exchange.providers) else { return page.ownPath }
    // Whom a code is for is asked for on the page for signing in, where its field is this provider's, or else here.
    guard case .field(let kind, _)? = page.descriptor.entrance else { return nil }
    let takesField =
      ProviderPage.taking(kind, of: exchange.offered(first: flow.name).filter(\.sendsCodes))?.name == page.name
    return takesField ? NextPage.page(of: flow.purpose, flow.name) : nil
  }

  /// Whether what the flow waits for is shown here.
  private func shows(_ view: FlowView, _ exchange: Exchange) -> Bool {
    view.status == .pending && exchange.address(of: view).hasPrefix(Self.path + "?")
  }

  /// - Parameter chosen: of several that may be begun, the one whose form is shown.
  private func show(
    _ view: FlowView, notice: String?, refused: String? = nil, as chosen: ProviderName? = nil, _ typed: FormFields,
    _ refusal: Refusal?,
    _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    guard shows(view, exchange) || chosen != nil else { return exchange.leadOn(to: exchange.address(of: view)) }
    var form = StepForm(
      flow: view.flow, purpose: view.purpose, returnTo: view.returnTo, provider: view.step?.provider,
      choices: view.choices)
    if view.step == nil, let only = chosen ?? view.due { (form.provider, form.choices) = (only, []) }
    form.id = view.id.secret.reveal()
    form.step = view.step
    form.isFirst = !view.isUnderWay
    form.isEnrolling = view.isEnrolling
    form.notice = notice
    form.refused = refused
    form.typed = typed
    return page(form, refusal, exchange)
  }

  // MARK: waiting

  /// Asks a step that waits whether the decision has come.
  private func poll(_ view: FlowView, _ step: StepView, _ exchange: Exchange) async throws(Refusal) -> Response {
    let outcome = await PageFlow(driver: driver).prove(view.id, step.provider.rawValue, [:], exchange)
    do throws(Refusal) {
      let driven = try outcome.result.get()
      // Still the same page: a script reads from it when to ask again, and who has no scripts sees it come back.
      guard driven.view.step?.retryAfter != nil, exchange.isScripted || exchange.request.method == .get else {
        return lead(driven, outcome.cookies, exchange)
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

  /// What a form is about.
  private struct FlowState {
    var id: FlowID?
    let flow: String
    var provider: ProviderName?
    let returnTo: String?
  }

  private func send(_ exchange: Exchange) async throws(Refusal) -> Response {
    let sent = try await exchange.form()
    guard let id = sent["id"].map(FlowID.init(text:)) else { return try await begin(sent, exchange) }
    let view = try await driver.engine.view(id, client: try await driver.caller(exchange)).get()
    let named = sent["with"].flatMap(ProviderName.init(rawValue:))
    // Of a step that waits the person may take another way.
    let other = named.flatMap { view.step?.alternatives.contains($0) ?? false ? $0 : nil }
    if let step = view.step, step.retryAfter != nil, other == nil, sent["action"] != "skip" {
      return try await poll(view, step, exchange)
    }
    let provider = other ?? view.step?.provider ?? named ?? view.due
    let state = FlowState(id: id, flow: view.flow, provider: provider, returnTo: view.returnTo)
    let steps = PageFlow(driver: driver)
    do throws(Refusal) {
      switch sent["action"] {
      case "resend":
        let driven = try await driver.drive(exchange) { engine, client in await engine.resend(id, client: client) }
        return exchange.leadOn(
          to: FormFields.address(Self.path, ["id": id.secret.reveal(), "sent": "1"]), driven.cookies)
      case "skip":
        let driven = try await driver.drive(exchange) { engine, client in await engine.skip(id, client: client) }
        let next = await steps.onward(driven, exchange)
        return lead(next, next.cookies, exchange)
      default: break
      }
      guard let provider else { throw exchange.refusal(.stepNotOpen) }
      let outcome = await steps.prove(id, provider.rawValue, inputs(sent, provider, view.step, exchange), exchange)
      return lead(try outcome.result.get(), outcome.cookies, exchange)
    } catch {
      return try await refused(error, state, sent, [], exchange)
    }
  }

  /// Begins a flow; what was typed already is judged with it.
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
    let steps = PageFlow(driver: driver)
    let begun = await steps.begin(flow, nil, provider.rawValue, inputs, returnTo: state.returnTo, exchange)
    state.id = begun.id
    do throws(Refusal) {
      let driven = try begun.result.get()
      // What may be left out has not been judged by `begin`: the same is submitted now.
      if !inputs.isEmpty, let step = driven.view.step, step.provider == provider, step.redirectTo == nil,
        step.sentTo == nil, !step.fields.isEmpty,
        step.fields.allSatisfy({ !$0.isRequired }), Set(inputs.keys).isSubset(of: step.fields.map(\.name))
      {
        let id = driven.view.id
        var judged = try await driver.drive(exchange, as: driven) { engine, client in
          await engine.submit(id, fields: inputs, client: client)
        }
        judged.browser = driven.browser
        let next = await steps.onward(judged, exchange)
        return lead(next, begun.cookies + next.cookies, exchange)
      }
      return lead(driven, begun.cookies, exchange)
    } catch {
      return try await refused(error, state, sent, begun.cookies, exchange)
    }
  }

  /// What was typed into the provider's fields. Their names in the form have a prefix, so that none can be taken for
  /// one of ours.
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

  /// On to what is due: another site, or a page.
  private func lead(_ driven: FlowDriver.Driven, _ cookies: [String], _ exchange: Exchange) -> Response {
    guard exchange.isOffer, driven.view.status == .pending, driven.view.step?.redirectTo == nil else {
      return pages.lead(on: driven.view, cookies, exchange)
    }
    return exchange.leadOn(to: exchange.keepingOffer(exchange.address(of: driven.view)), cookies)
  }

  private func refused(
    _ refusal: Refusal, _ state: FlowState, _ typed: FormFields, _ cookies: [String], _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    switch refusal.code {
    case .unauthenticated:
      let back =
        state.id == nil
        ? ProviderPage.stepAddress(state.flow, with: state.provider, returnTo: state.returnTo) : state.returnTo
      return exchange.leadOn(to: FormFields.address("/auth/login", ["return_to": back]))
    case .flowNotFound, .flowExpired: throw refusal
    default: break
    }
    exchange.note(refusal)
    var response: Response
    if let id = state.id,
      case .success(let view) = await driver.engine.view(id, client: try await driver.caller(exchange))
    {
      // What a rival has completed meanwhile, or goes on elsewhere, has no form here to say it on. A step that has
      // waited, and was refused, may be begun again where it was.
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
      form.typed = typed
      response = page(form, refusal, exchange)
    }
    response.addRefusalHeaders(refusal)
    response.setCookies(cookies)
    return response
  }

  /// Where a person goes on who has lost the factor that a session's flow asks for: to the flow that resets it. That
  /// flow proves something else that the account holds; the link opens nothing by itself.
  private func lost(_ page: ProviderPage, _ form: StepForm, _ exchange: Exchange) -> String? {
    let purpose = form.flowPurpose
    switch purpose {
    case .factor(page.name, .change), .factor(page.name, .disable): break
    default: guard purpose.isProofAlone, purpose.needsSession, form.purpose(of: page.name) == .prove else { return nil }
    }
    // What is asked for once it was proved, such as a name, is asked of nobody who has lost it.
    let isProved = page.ceremonyButton != nil && form.step?.fields.contains { $0.kind == .json } == false
    guard !isProved, let reset = exchange.generation.flow(for: .factor(page.name, .reset))?.name,
      !exchange.offered(first: reset).isEmpty
    else {
      return nil
    }
    let back = purpose.isProofAlone ? form.returnTo : "/auth/account?done=\(reset)"
    return ProviderPage.stepAddress(reset, with: nil, returnTo: back)
  }

  private func page(_ form: StepForm, _ refusal: Refusal?, _ exchange: Exchange) -> Response {
    let words = pages.words(exchange)
    let provider = form.provider.flatMap(exchange.page(of:))
    var form = form
    form.reason = exchange.reason(for: form.flowPurpose, returnTo: form.returnTo, words)
    form.skip = exchange.skipping(form.flowPurpose, form.flow, to: form.returnTo)
    form.lost = provider.flatMap { lost($0, form, exchange) }
    // Whoever does not use the ceremony enters the digits that the account has.
    if provider?.ceremonyButton != nil, form.isFirst, form.flowPurpose.needsSession,
      let pad = form.step?.alternatives.compactMap(exchange.page(of:)).first(where: { $0.pad != nil }),
      let path = pad.ownPath
    {
      form.pad = (
        words.text("use_other", ["name": pad.shortName(words)]),
        PadPage.address(path, byHand: form.flow, returnTo: form.returnTo)
      )
    }
    let told = form.refused.flatMap { provider?.sentence(ofRefused: $0, words) == nil ? nil : $0 }
    let here = exchange.keepingOffer(
      form.id.map { FormFields.address(Self.path, ["id": $0, "refused": told]) }
        ?? (form.isForChange
          ? ChangeProof.address(of: form.flow, backTo: form.returnTo)
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
      model, title: model.heading, of: provider?.descriptor.words, status: refusal?.code.httpStatus ?? .ok, at: here,
      isTypedInto: model.confirms == nil, exchange)
  }
}
