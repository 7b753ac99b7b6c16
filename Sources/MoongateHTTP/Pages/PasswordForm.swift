import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// What `/auth/login` asks of people whom it knows: a new password after the code of `password_reset`, or, for a step-up, their own password or Google.
struct PasswordForm: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer

  struct Model: PageModel {
    static let template = PageTemplate.password
    let heading: String
    let subtitle: String
    let label: String
    let button: String
    let autocomplete: String
    let asksPassword: Bool
    let asksGoogle: Bool
    let isNew: Bool
    let id: String?
    let flow: String?
    let returnTo: String?
    /// Where who does not want to leads back to; nil where the flow has begun already.
    let back: String?
    let problem: String?
    let stressesSupport: Bool
  }

  /// Whether a password is what a flow waits for, and its owner is known.
  func isDue(in view: FlowView) -> Bool {
    let provider = view.step?.provider ?? (view.choices.count == 1 ? view.choices[0] : nil)
    return provider?.rawValue == "password" && (view.isUnderWay || FlowPurpose(flow: view.flow).needsSession)
  }

  func show(_ view: FlowView, _ exchange: Exchange) async throws(Refusal) -> Response {
    page(Ways(), id: view.id.secret.reveal(), flow: view.flow, returnTo: nil, nil, nil, exchange)
  }

  /// What this page can ask an account for.
  private struct Ways {
    var password = true
    var google = false
  }

  private static let password: ProviderName = "password"
  private static let google: ProviderName = "google_oauth"

  /// The page of a step-up by password or Google, where the flow is one; nil for a flow to sign in by.
  /// - Throws: 403 where the account has none of what the flow asks for here (exact.md, "Policies and tools").
  func stepUp(_ name: String, _ account: Account, _ returnTo: String?, problem: String?, _ exchange: Exchange) throws(Refusal) -> Response? {
    guard FlowPurpose(flow: name).needsSession, let flow = exchange.generation.flows[name] else { return nil }
    let ways = ways(flow, account, exchange)
    if ways.password || ways.google { return page(ways, id: nil, flow: name, returnTo: returnTo, problem, nil, exchange) }
    // A flow of the operator's that asks for a code first.
    for (provider, kind, path) in [("phone_otp", IdentifierKind.phone, "/auth/verify"), ("email_code", .email, "/auth/email")]
    where name != "step_up" && asks(flow, ProviderName(rawValue: provider), exchange) && account.identifier(kind)?.verifiedAt != nil {
      return exchange.leadOn(to: FormFields.address(path, ["flow": name, "return_to": returnTo]))
    }
    throw exchange.refusal(.denied)
  }

  private func asks(_ flow: FlowDefinition, _ provider: ProviderName?, _ exchange: Exchange) -> Bool {
    provider.map { (flow.steps.first?.choices.contains($0) ?? false) && exchange.generation.policies[$0] != nil } ?? false
  }

  private func ways(_ flow: FlowDefinition, _ account: Account, _ exchange: Exchange) -> Ways {
    Ways(
      password: asks(flow, Self.password, exchange) && account.credentials.contains { $0 == Self.password },
      google: asks(flow, Self.google, exchange) && account.identifiers.contains { $0.identifier.kind == .federated })
  }

  /// Begins the step of a step-up that another site judges.
  func leaveForGoogle(_ flow: String, returnTo: String?, _ exchange: Exchange) async throws(Refusal) -> Response {
    let outcome = await PageFlow(driver: driver).begin(flow, nil, Self.google.rawValue, [:], returnTo: returnTo, exchange)
    switch outcome.result {
    case .success(let begun): return pages.lead(on: begun.view, outcome.cookies, exchange)
    case .failure(let refusal): return try await refused(refusal, id: nil, flow, returnTo, outcome.cookies, exchange)
    }
  }

  func judge(_ sent: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    let inputs: [String: InputValue] = ["password": .text(sent["password"] ?? "")]
    let steps = PageFlow(driver: driver)
    let returnTo = exchange.targets.accept(sent["return_to"])
    let outcome: PageFlow.Outcome
    if let id = sent["id"] {
      outcome = await steps.prove(FlowID(text: id), "password", inputs, exchange)
    } else {
      outcome = await steps.begin(sent["flow"] ?? "step_up", nil, "password", inputs, returnTo: returnTo, exchange)
    }
    switch outcome.result {
    case .success(let driven): return exchange.leadOn(to: NextPage.address(of: driven.view), outcome.cookies)
    case .failure(let refusal):
      let flow = sent["flow"] ?? "password_reset"
      return try await refused(refusal, id: outcome.id?.secret.reveal() ?? sent["id"], flow, returnTo, outcome.cookies, exchange)
    }
  }

  private func refused(
    _ refusal: Refusal, id: String?, _ flow: String, _ returnTo: String?, _ cookies: [String], _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    guard refusal.code != .flowNotFound, refusal.code != .flowExpired, refusal.code != .unauthenticated else { throw refusal }
    exchange.note(refusal)
    var ways = Ways()
    if let definition = exchange.generation.flows[flow], FlowPurpose(flow: flow).needsSession, let own = try await driver.session(exchange) {
      ways = self.ways(definition, own.account, exchange)
    }
    let problem = pages.words(exchange).sentenceWithTries(of: refusal)
    var response = page(ways, id: id, flow: flow, returnTo: returnTo, problem, refusal, exchange)
    response.addRefusalHeaders(refusal)
    response.setCookies(cookies)
    return response
  }

  private func page(
    _ ways: Ways, id: String?, flow: String, returnTo: String?, _ problem: String?, _ refusal: Refusal?, _ exchange: Exchange
  ) -> Response {
    let words = pages.words(exchange)
    let isNew = flow == "password_reset"
    let model = Model(
      heading: words[isNew ? "new_password_title" : "confirm_title"],
      subtitle: words[isNew ? "new_password_subtitle" : ways.google ? "confirm_other_subtitle" : "confirm_password_subtitle"],
      label: words[isNew ? "new_password" : "password"], button: words[isNew ? "save_password" : "continue"],
      autocomplete: isNew ? "new-password" : "current-password", asksPassword: ways.password, asksGoogle: ways.google, isNew: isNew, id: id,
      flow: flow, returnTo: returnTo, back: id == nil ? NextPage.back(returnTo) : nil, problem: problem,
      stressesSupport: refusal?.code == .tooManyAttempts)
    let address = FormFields.address("/auth/login", ["id": id, "flow": id == nil ? flow : nil, "return_to": returnTo])
    return pages.page(model, title: model.heading, status: refusal?.code.httpStatus ?? .ok, at: address, exchange)
  }
}
