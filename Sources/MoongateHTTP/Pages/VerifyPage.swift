import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/verify?id=…` (seeds.md, S1): takes the code that was sent. The id is worth nothing without the cookie of the
/// browser that began the flow.
struct VerifyPage: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer
  let clock: any GatewayClock

  /// What the template shows.
  private struct Model {
    let frame: PageRenderer.Frame
    let length: Int
    let unit: String
    let sentTo: String
    let edit: String
    let action: String
    var notice: String?
    var problem: String?
    var isInvalid = false
    /// Whether a code can be entered.
    let isOpen: Bool
    let isExpired: Bool
    let isLocked: Bool
    let canResend: Bool
    let countdown: String?
    let stressesSupport: Bool
  }

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, "/auth/verify") { exchange throws(Refusal) in
        let query = try exchange.query()
        let id = try id(query, exchange)
        let view = try await driver.engine.view(id, client: try await driver.caller(exchange)).get()
        return try await show(view, notice: query["sent"] == nil ? nil : "Code sent!", nil, exchange)
      },
      Endpoint(.page, .post, "/auth/verify") { exchange throws(Refusal) in try await judge(exchange) },
    ]
  }

  private func id(_ query: FormFields, _ exchange: Exchange) throws(Refusal) -> FlowID {
    guard let text = query["id"] else { throw exchange.refusal(.flowNotFound) }
    return FlowID(text: text)
  }

  private func judge(_ exchange: Exchange) async throws(Refusal) -> Response {
    let id = try id(try exchange.query(), exchange)
    let form = try await exchange.form()
    do throws(Refusal) {
      if form["action"] == "resend" {
        _ = try await driver.drive(exchange) { engine, client in await engine.resend(id, client: client) }
        return .seeOther(FormFields.address("/auth/verify", ["id": id.secret.reveal(), "sent": "1"]))
      }
      let code = form["code"] ?? ""
      let driven = try await driver.drive(exchange) { engine, client in await engine.submit(id, fields: ["code": .text(code)], client: client) }
      var response = Response.seeOther(
        driven.view.status == .complete ? driven.view.next ?? "/" : FormFields.address("/auth/verify", ["id": id.secret.reveal()]))
      response.setCookies(driven.cookies)
      return response
    } catch {
      // What goes on after a refusal is the flow as it stands now; where there is none any more, the refusal says so itself.
      guard case .success(let view) = await driver.engine.view(id, client: try await driver.caller(exchange)) else { throw error }
      return try await show(view, notice: nil, error, exchange)
    }
  }

  private func show(_ view: FlowView, notice: String?, _ refusal: Refusal?, _ exchange: Exchange) async throws(Refusal) -> Response {
    if view.status == .complete {
      // A second submit of the right code, or the page of an earlier sign-in: it was a success, so it leads on.
      if try await driver.session(exchange) != nil { return .seeOther(view.next ?? "/") }
      return pages.page("message", completed(view, exchange), generation: exchange.generation)
    }
    guard let step = view.step, let sentTo = step.sentTo else {
      return .seeOther(FormFields.address(page(of: view), ["id": view.id.secret.reveal()]))
    }
    var response = pages.page(
      "verify", model(view, step, sentTo, notice, refusal, exchange), status: refusal?.code.httpStatus ?? .ok,
      generation: exchange.generation)
    if let refusal {
      exchange.note(refusal)
      response.addRefusalHeaders(refusal)
    }
    return response
  }

  private func model(
    _ view: FlowView, _ step: StepView, _ sentTo: String, _ notice: String?, _ refusal: Refusal?, _ exchange: Exchange
  ) -> Model {
    let now = clock.now()
    let locked = step.lockedUntil.flatMap { now < $0 ? $0 - now : nil }
    let isExpired = step.expiresAt.map { now >= $0 } ?? false
    // An expired code may be replaced at once, the timer notwithstanding.
    let wait = isExpired ? nil : step.resendAt.flatMap { now < $0 ? $0 - now : nil }
    let field = step.fields.first { $0.name == "code" }
    let id = view.id.secret.reveal()
    var model = Model(
      frame: pages.frame("Verify Phone Number", exchange.gateway), length: field?.length ?? 6, unit: field?.kind == .text ? "character" : "digit",
      sentTo: sentTo, edit: FormFields.address(page(of: view), ["id": id]), action: FormFields.address("/auth/verify", ["id": id]), notice: notice,
      isOpen: locked == nil && !isExpired, isExpired: isExpired, isLocked: locked != nil, canResend: locked == nil && wait == nil,
      countdown: locked == nil ? wait?.clockText : nil, stressesSupport: locked != nil)
    if let locked {
      model.problem = "Too many attempts. Please try again in \(locked.spokenLength)."
    } else if let refusal {
      model.problem = sentence(refusal)
      model.isInvalid = [.invalidCode, .invalidInput].contains(refusal.code)
    } else if isExpired {
      model.problem = RefusalCode.codeExpired.sentence
    }
    return model
  }

  private func sentence(_ refusal: Refusal) -> String {
    switch refusal.code {
    case .invalidCode:
      return refusal.sentence + (refusal.attemptsLeft.map { " \($0) \($0 == 1 ? "try" : "tries") left." } ?? "")
    case .resendTooSoon: return refusal.retryAfter.map { "Resend code in \($0.clockText)" } ?? refusal.sentence
    case .deliveryFailed: return "Failed to send code. Try again."
    case .busy, .storeUnavailable, .policyError: return "Unable to verify. Check your connection."
    default: return refusal.sentence
    }
  }

  /// Where the flow's number is changed.
  private func page(of view: FlowView) -> String { view.flow == "register" ? "/auth/register" : "/auth/login" }

  private func completed(_ view: FlowView, _ exchange: Exchange) -> MessagePage {
    MessagePage(
      frame: pages.frame("Verified", exchange.gateway), heading: "Verified ✓", sentence: "This sign-in is complete.",
      links: [
        MessagePage.Link(address: view.next ?? "/", label: "Continue"),
        MessagePage.Link(address: "/auth/login", label: "Sign in again", style: "link"),
      ], reference: nil)
  }
}
