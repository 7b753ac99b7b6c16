import Hummingbird
import MoongateCore
import MoongateSDK

/// Flow operations of pages: an ended flow is replaced by a new one, and a step without input is begun automatically.
struct PageFlow: Sendable {
  let driver: FlowDriver
  /// The user's choice to stay signed in; nil: the form does not ask.
  var remember: Bool?

  /// The result of a step.
  struct Outcome: Sendable {
    let result: Result<FlowDriver.Outcome, Refusal>
    /// The flow; nil if none exists.
    let id: FlowID?
    /// `Set-Cookie` header values, for success and failure.
    let cookies: [String]
    /// The browser that this request has bound a new flow to.
    var browser: TokenHash?
  }

  /// More than five parameters: the first step of a flow.
  /// Begins a step of a provider, in the named flow if it is still active, or else in a new one.
  func begin(
    _ name: String, _ known: FlowID?, _ provider: String, _ inputs: [String: InputValue], returnTo: String?,
    _ exchange: Exchange
  ) async -> Outcome {
    if let known {
      let result = await step(known, provider, inputs, as: nil, exchange)
      if !result.isOfDeadFlow { return Outcome(result: result, id: known, cookies: result.cookies) }
    }
    do throws(Refusal) {
      let made = try await driver.create(name, returnTo: returnTo, exchange)
      let result = await step(made.view.id, provider, inputs, as: made, exchange)
      return Outcome(
        result: result, id: made.view.id, cookies: made.cookies + result.cookies, browser: made.browser)
    } catch {
      return Outcome(result: .failure(error), id: nil, cookies: [])
    }
  }

  /// Submits the input to the provider's step, whether or not it has been begun.
  func prove(_ id: FlowID, _ provider: String, _ inputs: [String: InputValue], _ exchange: Exchange) async -> Outcome {
    let result: Result<FlowDriver.Outcome, Refusal>
    do throws(Refusal) {
      let view = try await driver.view(id, exchange).get()
      // A step at another site is begun again, which creates a new redirect.
      if let step = view.step, step.provider.rawValue == provider, step.redirectTo == nil {
        let driven = try await driver.drive(exchange) { engine, client in
          await engine.submit(id, fields: inputs, client: client.remembering(remember))
        }
        result = .success(await beginDueSteps(driven, exchange))
      } else {
        result = await step(id, provider, inputs, as: nil, exchange)
      }
    } catch {
      result = .failure(error)
    }
    return Outcome(result: result, id: id, cookies: result.cookies)
  }

  private func step(
    _ id: FlowID, _ provider: String, _ inputs: [String: InputValue], as created: FlowDriver.Outcome?,
    _ exchange: Exchange
  ) async -> Result<FlowDriver.Outcome, Refusal> {
    do throws(Refusal) {
      var driven = try await driver.drive(exchange, as: created) { engine, client in
        await engine.begin(id, provider: provider, fields: inputs, client: client.remembering(remember))
      }
      driven.browser = created?.browser
      return .success(await beginDueSteps(driven, exchange))
    } catch {
      return .failure(error)
    }
  }

  /// The code page of the flow, if another code was refused as too soon: the latest code still works there.
  /// - Returns: nil for any other refusal, and if the flow has sent no code.
  func currentCode(after refusal: Refusal, _ outcome: Outcome, _ exchange: Exchange) async throws(Refusal) -> Response?
  {
    guard refusal.code == .resendTooSoon, let id = outcome.id,
      case .success(let view) = try await driver.view(id, exchange),
      view.step?.sentTo != nil
    else { return nil }
    return exchange.redirect(to: exchange.address(of: view), outcome.cookies)
  }

  /// Begins the steps that are due and need no choice or input, such as sending a code to the account's own address.
  func beginDueSteps(_ driven: FlowDriver.Outcome, _ exchange: Exchange) async -> FlowDriver.Outcome {
    if let registered = await registering(driven, exchange) { return registered }
    var driven = driven
    while driven.view.status == .pending, driven.view.step == nil, let provider = driven.view.due {
      let before = driven
      do throws(Refusal) {
        driven = try await driver.drive(exchange, as: before) { engine, client in
          await engine.begin(before.view.id, provider: provider.rawValue, fields: [:], client: client)
        }
      } catch {
        // The step's page asks for the missing input, or explains the refusal.
        return before
      }
      driven.cookies = before.cookies + driven.cookies
      driven.browser = before.browser
      if driven.view.step?.redirectTo != nil { break }
    }
    return driven
  }
}

// MARK: - Registering

extension PageFlow {
  /// Completes a registration in which only a skippable code is missing, and sends that code in the new session.
  ///
  /// A user who leaves the code page has an account and is signed in. The address stays unverified, and cannot be used
  /// to sign in, until the code is entered, as after "Skip for now".
  /// - Returns: nil if the flow requires the code, if no flow verifies the address later, or if an app receives the
  ///   result.
  private func registering(_ driven: FlowDriver.Outcome, _ exchange: Exchange) async -> FlowDriver.Outcome? {
    let view = driven.view
    // Where an account needs a verified address, or its invitation is for one, the code cannot be skipped.
    guard !exchange.generation.accounts.registration.requiresVerification, view.purpose.registersFactor,
      view.status == .pending, view.isUnderWay, view.step == nil, view.isSkippable, view.app == nil,
      let last = exchange.generation.flows[view.flow]?.steps.last, last.isSkippable, !view.choices.isEmpty,
      Set(view.choices).isSubset(of: last.choices),
      view.choices.allSatisfy({ exchange.page(of: $0).map { $0.sendsCodes && $0.isEmail } ?? false }),
      let verifying = exchange.generation.flow(for: .verify(.email)),
      let provider = exchange.offered(first: verifying.name).first?.name
    else { return nil }
    do throws(Refusal) {
      var made = try await driver.drive(exchange, as: driven) { engine, client in
        await engine.skip(view.id, client: client)
      }
      made.cookies = driven.cookies + made.cookies
      made.browser = driven.browser
      guard made.view.status == .complete, let token = made.view.session?.token else { return made }
      let verification = await verification(
        by: provider, in: verifying.name, as: token, returnTo: made.view.next, exchange)
      guard var sent = verification else { return made }
      sent.cookies = made.cookies + sent.cookies
      return sent
    } catch {
      return nil
    }
  }

  /// Mails a code to the unverified address of the new account.
  /// - Returns: the flow, even if its code could not be sent: its page shows the error and offers to send another code.
  ///   Nil if there is no such flow.
  private func verification(
    by provider: ProviderName, in flow: String, as token: SecretText, returnTo: String?, _ exchange: Exchange
  ) async -> FlowDriver.Outcome? {
    do throws(Refusal) {
      guard let session = try await driver.session(of: token, exchange) else { return nil }
      let created = try await driver.create(flow, returnTo: returnTo, in: session, exchange)
      do throws(Refusal) {
        var sent = try await driver.drive(exchange, as: created, in: session) { engine, client in
          await engine.begin(created.view.id, provider: provider.rawValue, fields: [:], client: client)
        }
        sent.cookies = created.cookies + sent.cookies
        sent.browser = created.browser
        return sent
      } catch {
        exchange.log(error)
        return created
      }
    } catch {
      return nil
    }
  }
}

extension Result where Success == FlowDriver.Outcome, Failure == Refusal {
  /// Whether the flow has ended, so that a new one is needed.
  fileprivate var isOfDeadFlow: Bool {
    guard case .failure(let refusal) = self else { return false }
    return [.flowNotFound, .flowExpired, .stepNotOpen].contains(refusal.code)
  }

  fileprivate var cookies: [String] {
    guard case .success(let driven) = self else { return [] }
    return driven.cookies
  }
}

/// Decides which page a flow continues on.
enum NextPage {
  /// The refusals that a page may be asked to show. Text from a link is never shown.
  static let shown: [RefusalCode] = [
    .oauthCancelled, .oauthFailed, .alreadyRegistered, .accountNotFound, .registrationClosed, .invitationRequired,
    .invitationInvalid, .disabled, .denied, .tooManyAttempts, .rateLimited, .identifierTooNew,
    .policyError,
  ]

  /// The target for a user who leaves a page without doing anything. Pages of the gateway are not a target, because
  /// they would redirect here again.
  static func back(_ returnTo: String?) -> String {
    guard let returnTo, !returnTo.hasPrefix("/auth/") || WishedStep.isMarked(returnTo) else { return PagePath.account }
    return returnTo
  }

  /// A refusal as an address has it: its name and, if it is over at some time, the seconds until then, or what is wrong
  /// with an invitation.
  static func text(of refusal: Refusal, as name: String) -> String {
    if let problem = refusal.invitationProblem { return "\(name).\(problem.rawValue)" }
    guard refusal.code == .identifierTooNew, let wait = refusal.retryAfter else { return name }
    return "\(name).\(max(1, wait.components.seconds))"
  }

  /// The sentence of the gateway's own refusal in an address; nil if it is not one that is shown.
  static func sentence(ofRefused text: String, _ words: Words) -> String? {
    let parts = text.split(separator: ".", maxSplits: 1)
    guard let code = parts.first.flatMap({ RefusalCode(reserved: String($0)) }), shown.contains(code) else {
      return nil
    }
    let seconds = parts.dropFirst().first.flatMap { Int($0) }.flatMap { (1...longestWait).contains($0) ? $0 : nil }
    let wait = seconds.map { Duration.seconds($0) }
    var refusal = Refusal(code, decision: DecisionID(text: ""), retryAfter: wait)
    if code == .invitationInvalid {
      refusal.invitationProblem = parts.dropFirst().first.flatMap { InvitationProblem(rawValue: String($0)) }
    }
    return words.sentence(of: refusal)
  }

  /// The longest wait that an address may ask a page to show, in seconds.
  private static let longestWait = 366 * 86_400

  /// The refusal that is shown for a code.
  static func shownCode(_ code: RefusalCode) -> RefusalCode {
    if case .policyReason = code { return code }
    return shown.contains(code) ? code : .oauthFailed
  }

  /// The default flow of the sign-in or registration page.
  static func defaultFlow(of page: String) -> String {
    (page == PagePath.register ? FlowPurpose.register(setting: nil) : .signIn).usualName
  }

  /// The page on which the flow begins.
  static func page(of view: FlowView) -> String { page(of: view.purpose, view.flow) }

  /// The page on which a flow of this purpose and name begins.
  static func page(of purpose: FlowPurpose, _ flow: String) -> String {
    if case .register = purpose { return PagePath.register }
    return flow == defaultFlow(of: PagePath.register) ? PagePath.register : PagePath.signIn
  }
}

extension ProviderPage {
  /// The message for a refusal from its site: one that its policy words, a known one, or one that it has declared. Text
  /// from a link is never shown.
  func sentence(ofRefused name: String, _ words: Words) -> String? {
    if let said = reasons[name] { return words.sentence(ofReason: name, said) }
    guard let code = name.split(separator: ".").first.flatMap({ RefusalCode(reserved: String($0)) }) else {
      let outcome = RefusalReason(rawValue: name).flatMap(descriptor.outcome)
      return outcome.map { words.withTranslations(of: descriptor.words).translated($0.sentence) }
    }
    if code == .oauthFailed { return siteFailed(words) }
    return NextPage.sentence(ofRefused: name, words)
  }
}

extension Exchange {
  /// The page of the flow's next step.
  func address(of view: FlowView) -> String {
    if view.status == .complete { return view.next ?? "/" }
    if view.app?.needsConsent ?? false { return AppPage.address(of: view) }
    let id = view.id.secret.reveal()
    if ChoosePage.isDue(in: view) { return ChoosePage.address(of: view) }
    // All waiting steps have the same page, regardless of other pages of their providers.
    if view.step?.retryAfter != nil { return FormFields.address(ProviderPage.stepPath, ["id": id]) }
    let due = view.due.flatMap { ProviderPage($0, providers) }
    guard let due else {
      return FormFields.address(choosesOnStepPage(view) ? ProviderPage.stepPath : NextPage.page(of: view), ["id": id])
    }
    if due.isOnStepPage { return FormFields.address(ProviderPage.stepPath, ["id": id]) }
    guard let path = due.ownPath else { return FormFields.address(NextPage.page(of: view), ["id": id]) }
    guard due.sendsCodes else { return FormFields.address(path, ["id": id]) }
    if let step = view.step, step.sentTo != nil, step.fields.contains(where: { $0.name == "code" }) {
      // The PIN pad asks for the code of its reset together with the new digits.
      let reset = view.purpose.resetProvider.flatMap { ProviderPage($0, providers) }
      return FormFields.address(reset?.pad == nil ? path : reset?.ownPath ?? path, ["id": id])
    }
    // At the beginning of a sign-in flow, the sign-in page asks for the identifier; for a provider that it does not
    // offer, the step page does.
    if view.isUnderWay || !view.purpose.letsIn { return FormFields.address(path, ["id": id]) }
    if case .field? = due.descriptor.entrance { return FormFields.address(NextPage.page(of: view), ["id": id]) }
    return FormFields.address(ProviderPage.stepPath, ["id": id])
  }

  /// Whether the user chooses a provider on `/auth/step`. At the beginning of a flow, the flow's own page offers the
  /// choice.
  private func choosesOnStepPage(_ view: FlowView) -> Bool {
    guard view.choices.count > 1 else { return false }
    if view.isUnderWay || view.choices.allSatisfy({ ProviderPage($0, providers)?.isOnStepPage ?? true }) { return true }
    let isPadReset = view.purpose.resetProvider.flatMap { ProviderPage($0, providers) }?.pad != nil
    return view.purpose.needsSession && !isPadReset
  }

  /// The name of the refusal that a page shows: one that the provider has declared, a reason that its policy words, or
  /// one of the gateway's.
  private func shownName(_ code: RefusalCode, by provider: ProviderName) -> String {
    switch code {
    case .provider(let outcome): outcome.reason.rawValue
    case .policyReason(let reason):
      page(of: provider)?.reasons[reason] == nil ? RefusalCode.denied.name : reason
    default: NextPage.shownCode(code).name
    }
  }

  /// The page on which the flow begins, with the message of a refusal. In a step-up, the user stays signed in and
  /// returns to where it was required.
  func address(
    ofRefused refusal: Refusal, of view: FlowView, by provider: ProviderName, id: FlowID?, returnTo: String?
  ) -> String {
    let shown = NextPage.text(of: refusal, as: shownName(refusal.code, by: provider))
    if view.purpose.connectsSite {
      return FormFields.address(PagePath.account, ["refused": shown, "by": provider.rawValue])
    }
    if ProviderPage(provider, providers)?.isOnStepPage ?? true {
      if let id {
        return FormFields.address(
          ProviderPage.stepPath, ["id": id.secret.reveal(), "refused": shown])
      }
      return ProviderPage.stepAddress(view.flow, with: provider, returnTo: returnTo, refused: shown)
    }
    // The message names the site, or is the site's own.
    let isOfSite = RefusalCode(reserved: shown) == nil || shown == RefusalCode.oauthFailed.name
    let site = isOfSite && refusingSite(nil)?.name != provider ? provider.rawValue : nil
    // The default flow of a page does not have to be named.
    let page = view.purpose.needsSession ? PagePath.signIn : NextPage.page(of: view)
    let flow =
      view.purpose.needsSession || id == nil && view.purpose.letsIn && NextPage.defaultFlow(of: page) != view.flow
      ? view.flow : nil
    let kept = view.purpose.needsSession ? nil : id?.secret.reveal()
    return FormFields.address(page, ["id": kept, "flow": flow, "refused": shown, "by": site, "return_to": returnTo])
  }
}
