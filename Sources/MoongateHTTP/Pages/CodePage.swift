import Hummingbird
import MoongateCore
import MoongateSDK

/// The page of a code provider, with boxes for the code that was sent, such as `/auth/verify?id=…`. The id is useless
/// without the cookie of the browser that began the flow.
struct CodePage: Sendable {
  let page: ProviderPage
  let driver: FlowDriver
  let pages: PageRenderer
  let clock: any GatewayClock
  /// Shown for the address without an id.
  let contact: ContactPage

  private var path: String { page.ownPath ?? ProviderPage.stepPath }
  private var kind: IdentifierKind { page.isEmail ? .email : .phone }

  init(_ page: ProviderPage, _ driver: FlowDriver, _ pages: PageRenderer, clock: any GatewayClock) {
    self.page = page
    self.driver = driver
    self.pages = pages
    self.clock = clock
    contact = ContactPage(provider: page, driver: driver, pages: pages)
  }

  func show(_ exchange: Exchange) async throws(Refusal) -> Response {
    let query = try exchange.query()
    guard let text = query["id"] else { return try await contact.show(query, exchange) }
    let view = try await driver.view(FlowID(text: text), exchange).get()
    if query["edit"] != nil, view.status == .pending, view.step?.provider == page.name, view.asks(for: kind) {
      return try await contact.show(view, nil, exchange)
    }
    return try await show(view, notice: query["sent"] == nil ? nil : "code_sent", nil, exchange)
  }

  func send(_ exchange: Exchange) async throws(Refusal) -> Response {
    guard let text = try exchange.query()["id"], try !exchange.isSwitch else { return try await contact.send(exchange) }
    return try await judge(FlowID(text: text), try await exchange.form(), exchange)
  }

  private func judge(_ id: FlowID, _ form: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    let action = form["action"]
    do throws(Refusal) {
      let driven: FlowDriver.Outcome
      switch action {
      case "resend":
        let resent = try await driver.drive(exchange) { engine, client in await engine.resend(id, client: client) }
        return exchange.redirect(to: FormFields.address(path, ["id": id.secret.reveal(), "sent": "1"]), resent.cookies)
      case "instead":
        // Another provider of the step's `fallback`, for the same phone number or email address.
        let driven = try await driver.drive(exchange) { engine, client in
          await engine.begin(id, provider: form["provider"] ?? "", fields: [:], client: client)
        }
        let sent = exchange.address(of: driven.view)
        return exchange.redirect(to: sent + (sent.contains("?") ? "&sent=1" : "?sent=1"), driven.cookies)
      case "skip": driven = try await driver.drive(exchange) { engine, client in await engine.skip(id, client: client) }
      default:
        let code = form["code"] ?? ""
        driven = try await driver.drive(exchange) { engine, client in
          await engine.submit(id, fields: ["code": .text(code)], client: client)
        }
      }
      let next = await PageFlow(driver: driver).beginDueSteps(driven, exchange)
      return exchange.redirect(to: exchange.address(of: next.view), next.cookies)
    } catch {
      // The flow has ended during a lock, so a new one is begun for the same number.
      if action == "resend", [.flowNotFound, .flowExpired].contains(error.code),
        let again = await resendInNewFlow(form, exchange)
      {
        return again
      }
      // After a refusal, the page shows the current state of the flow. If the flow no longer exists, the refusal itself
      // is shown.
      guard case .success(let view) = try await driver.view(id, exchange) else {
        throw error
      }
      return try await show(view, notice: nil, error, exchange)
    }
  }

  /// Sends a code to the same identifier in a new flow; nil if that is not possible.
  private func resendInNewFlow(_ form: FormFields, _ exchange: Exchange) async -> Response? {
    guard let name = form["flow"], let to = form["to"], exchange.generation.flows[name] != nil else { return nil }
    let steps = PageFlow(driver: driver, remember: form["remember"] != nil)
    let outcome = await steps.begin(
      name, nil, page.name.rawValue, [page.identifierField: .text(to)],
      returnTo: exchange.targets.accept(form["return_to"]), exchange)
    guard case .success(let begun) = outcome.result, begun.view.step?.sentTo != nil else { return nil }
    return exchange.redirect(to: exchange.address(of: begun.view) + "&sent=1", outcome.cookies)
  }

  // MARK: the page

  private func show(_ view: FlowView, notice: String?, _ refusal: Refusal?, _ exchange: Exchange) async throws(Refusal)
    -> Response
  {
    if view.status == .complete {
      // The right code was submitted twice, or this is the page of an earlier sign-in. The sign-in succeeded, so it
      // continues.
      if try await driver.session(exchange) != nil { return exchange.redirect(to: view.next ?? "/") }
      let words = pages.words(exchange)
      return pages.page(completed(view, words), title: words["verified_page"], kind: "done", exchange)
    }
    guard let step = view.step, step.provider == page.name, let sentTo = step.sentTo,
      step.fields.contains(where: { $0.name == "code" })
    else {
      let next = exchange.address(of: view)
      if next.hasPrefix(path + "?") { return try await contact.show(view, refusal, exchange) }
      return exchange.redirect(to: next)
    }
    let isEmail = page.isEmail
    let model = model(view, step, sentTo, isEmail: isEmail, notice, refusal, exchange)
    if let refusal { exchange.log(refusal) }
    return pages.page(
      model, title: model.heading, of: page.descriptor.words, kind: isEmail ? "email" : "verify", refusal: refusal,
      exchange)
  }

  /// More than five parameters: the values of the page that differ between requests.
  private func model(
    _ view: FlowView, _ step: StepView, _ sentTo: String, isEmail: Bool, _ notice: String?, _ refusal: Refusal?,
    _ exchange: Exchange
  ) -> CodeModel {
    let words = words(exchange)
    let now = clock.now()
    let locked = step.lockedUntil.flatMap { now < $0 ? $0 - now : nil }
    let isExpired = step.expiresAt.map { now >= $0 } ?? false
    // An expired code can be replaced at once. A remaining wait then means that too many codes were sent.
    let wait = step.resendAt.flatMap { now < $0 ? $0 - now : nil }
    let field = step.fields.first { $0.name == "code" }
    let length = field?.length ?? 6
    let isDigits = field?.kind != .text
    let id = view.id.secret.reveal()
    let unit = isDigits ? "digits" : "characters"
    let edit = edit(view, isEmail: isEmail, id: id, exchange)
    let changing = Self.changing(view, isEmail: isEmail, exchange)
    // A registration with a password starts again with its whole form.
    let isFormDue = view.purpose.registersFactor && view.isUnderWay
    let isSigningIn = !view.purpose.needsSession
    var model = CodeModel(
      heading: words[heading(view, isEmail: isEmail)], isEmail: isEmail, length: length,
      boxes: Array(repeating: true, count: length),
      isDigits: isDigits, label: words.text("code_" + unit, length: length),
      sentLine: words.text("sent_" + unit, length: length), sentTo: sentTo, edit: edit,
      editLabel: words[isEmail ? "edit_email" : "edit_phone"],
      editTitle: words[isEmail ? "edit_email_title" : "edit_title"],
      editAction: isFormDue ? nil : edit?.prefix { $0 != "?" }.description,
      editField: page.identifierField,
      editWay: isEmail ? (view.purpose.recoveredProvider != nil ? "reset" : "code") : "phone",
      editFlow: changing ?? view.flow,
      back: changing == nil ? edit ?? NextPage.back(view.returnTo) : NextPage.back(view.returnTo),
      other: words[isEmail ? "other_email" : "other_phone"],
      action: FormFields.address(path, ["id": id]), id: id, flow: view.flow, returnTo: view.returnTo,
      isRemembered: view.isRemembered ?? false,
      region: exchange.gateway.region,
      callingCode: exchange.callingCode(exchange.gateway.region),
      canStartAnew: isSigningIn,
      notice: notice.map { words[$0] }, state: locked != nil ? "locked" : isExpired ? "expired" : "open",
      isOpen: locked == nil && !isExpired,
      isExpired: isExpired, isLocked: locked != nil, canResend: locked == nil && wait == nil,
      countdown: locked == nil ? wait.map(Countdown.init) : nil,
      lock: locked.map(Countdown.init),
      expiresIn: step.expiresAt.map { Countdown(now < $0 ? $0 - now : .zero).milliseconds },
      fallbacks: step.fallbacks.compactMap(exchange.page(of:)).map {
        CodeModel.Fallback(provider: $0.name.rawValue, label: words.text("send_instead", ["name": $0.shortName(words)]))
      },
      canSkip: step.isSkippable, help: words[isEmail ? "check_email" : "check_phone"], stressesSupport: locked != nil)
    if let locked {
      model.problem = words.text("locked", ["wait": words.wait(locked)])
    } else if let refusal {
      model.problem = sentence(refusal, words, exchange)
      model.code = refusal.code.name
      model.isInvalid = [.invalidCode, .invalidInput].contains(refusal.code)
      if refusal.code == .invalidCode { model.state = "wrong" }
    } else if isExpired {
      model.problem = words["code_expired"]
    }
    return model
  }

  /// The name of the page's heading, by the purpose of the code.
  private func heading(_ view: FlowView, isEmail: Bool) -> String {
    switch view.purpose {
    case .factor(_, .recover): "reset_code_title"
    // A provider whose codes are not mailed has its own heading.
    case .signIn where isEmail && !view.isUnderWay && page.descriptor.words?.page["verify_email"] == nil:
      "sign_in_code_title"
    default: isEmail ? "verify_email" : "verify_phone"
    }
  }

  /// The flow that replaces an unverified address, such as a mistyped one; nil in all flows except its verification.
  private static func changing(_ view: FlowView, isEmail: Bool, _ exchange: Exchange) -> String? {
    guard case .verify(let kind) = view.purpose, let flow = exchange.generation.flow(for: .change(kind))?.name,
      !exchange.offered(first: flow).isEmpty
    else { return nil }
    return flow
  }

  /// Where the identifier of the flow can be changed; nil if it belongs to the account.
  private func edit(_ view: FlowView, isEmail: Bool, id: String, _ exchange: Exchange) -> String? {
    switch view.purpose {
    case .verify:
      Self.changing(view, isEmail: isEmail, exchange).map {
        FormFields.address(path, ["flow": $0, "return_to": view.returnTo])
      }
    case .change, .join: FormFields.address(path, ["flow": view.flow, "return_to": view.returnTo])
    // A user who has registered by a name would lose it on the form of the registration.
    case .register where view.isUnderWay && view.purpose.registersFactor:
      view.asks(for: kind)
        ? FormFields.address(path, ["id": id, "edit": "1"]) : FormFields.address(NextPage.page(of: view), ["id": id])
    case .signIn, .register, .factor(_, .recover):
      !view.isUnderWay ? FormFields.address(NextPage.page(of: view), ["id": id]) : nil
    default: nil
    }
  }

  /// The words of the page, overridden by those of the provider.
  private func words(_ exchange: Exchange) -> Words {
    pages.words(exchange).withTranslations(of: page.descriptor.words)
  }

  private func sentence(_ refusal: Refusal, _ words: Words, _ exchange: Exchange) -> String {
    switch refusal.code {
    // A limit without a lock has the same message as a lock.
    case .tooManyAttempts: words.sentence(of: refusal)
    case .deliveryFailed: words.sentence(of: refusal, failing: words["failed_to_send"], exchange)
    default: words.sentence(of: refusal, failing: words["unable_to_verify"], exchange)
    }
  }

  private func completed(_ view: FlowView, _ words: Words) -> MessageModel {
    MessageModel(
      heading: words["verified_title"], sentence: words["verified_message"],
      links: [
        MessageModel.Link(address: view.next ?? "/", label: words["continue"]),
        MessageModel.Link(address: PagePath.signIn, label: words["sign_in_again"], style: "link"),
      ])
  }
}
