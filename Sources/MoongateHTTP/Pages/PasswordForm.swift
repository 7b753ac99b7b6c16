import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// One field for a password, on `/auth/login`: a new one after the code of `password_reset`, or one's own for a step-up.
struct PasswordForm: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer

  private struct Model {
    let heading: String
    let subtitle: String
    let label: String
    let button: String
    let autocomplete: String
    let isNew: Bool
    let id: String?
    let flow: String?
    let returnTo: String?
    let problem: String?
    let stressesSupport: Bool
  }

  /// Whether a password is what a flow waits for, and its owner is known.
  func isDue(in view: FlowView) -> Bool {
    let provider = view.step?.provider ?? (view.choices.count == 1 ? view.choices[0] : nil)
    return provider?.rawValue == "password" && (!view.passed.isEmpty || FlowPurpose(flow: view.flow).needsSession)
  }

  func show(_ view: FlowView, _ exchange: Exchange) async throws(Refusal) -> Response {
    page(id: view.id.secret.reveal(), flow: view.flow, returnTo: nil, nil, exchange)
  }

  /// The page of a step-up by password, where the flow is one; nil else.
  func stepUp(_ name: String, _ exchange: Exchange) -> ((_ returnTo: String?) async throws(Refusal) -> Response)? {
    let password: ProviderName = "password"
    guard FlowPurpose(flow: name).needsSession, let flow = exchange.generation.flows[name], exchange.generation.policies[password] != nil,
      flow.steps.first?.choices.contains(password) ?? false
    else { return nil }
    return { returnTo throws(Refusal) in page(id: nil, flow: name, returnTo: returnTo, nil, exchange) }
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
      guard refusal.code != .flowNotFound, refusal.code != .flowExpired, refusal.code != .unauthenticated else { throw refusal }
      exchange.note(refusal)
      var response = page(
        id: outcome.id?.secret.reveal() ?? sent["id"], flow: sent["flow"] ?? "password_reset", returnTo: returnTo, refusal, exchange)
      response.addRefusalHeaders(refusal)
      response.setCookies(outcome.cookies)
      return response
    }
  }

  private func page(id: String?, flow: String, returnTo: String?, _ refusal: Refusal?, _ exchange: Exchange) -> Response {
    let words = pages.words(exchange)
    let isNew = flow == "password_reset"
    let model = Model(
      heading: words[isNew ? "new_password_title" : "confirm_title"],
      subtitle: words[isNew ? "new_password_subtitle" : "confirm_password_subtitle"], label: words[isNew ? "new_password" : "password"],
      button: words[isNew ? "save_password" : "continue"], autocomplete: isNew ? "new-password" : "current-password", isNew: isNew, id: id,
      flow: flow,
      returnTo: returnTo, problem: refusal.map { words.sentenceWithTries(of: $0) }, stressesSupport: refusal?.code == .tooManyAttempts)
    return pages.page("password", model, title: model.heading, status: refusal?.code.httpStatus ?? .ok, exchange)
  }
}
