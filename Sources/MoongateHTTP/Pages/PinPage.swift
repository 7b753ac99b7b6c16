import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/pin` (seeds.md, S3): the lock page, and choosing, changing, forgetting and turning off a passcode. The flow's name says which.
struct PinPage: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer

  /// What is asked for, by the names of the form's fields.
  enum Task: Sendable {
    case create, change, unlock, disable
    /// The code, the new passcode and its repetition.
    case reset
    /// The same, when the code was right and the passcode was not taken.
    case resetAfterCode
    /// Before a code was sent: what can be done.
    case forgotten
  }

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, "/auth/pin") { exchange throws(Refusal) in try await show(exchange) },
      Endpoint(.page, .post, "/auth/pin") { exchange throws(Refusal) in try await send(exchange) },
    ]
  }

  // MARK: showing

  private func show(_ exchange: Exchange) async throws(Refusal) -> Response {
    let query = try exchange.query()
    let returnTo = exchange.targets.accept(query["return_to"])
    if let text = query["id"] {
      let view = try await driver.engine.view(FlowID(text: text), client: try await driver.caller(exchange)).get()
      guard view.status == .pending else { return exchange.leadOn(to: view.next ?? "/") }
      guard let task = task(of: view) else { return exchange.leadOn(to: NextPage.address(of: view)) }
      let notice = task == .reset && query["sent"] != nil ? "code_sent" : nil
      return try await page(task, flow: view.flow, view: view, returnTo: view.returnTo, nil, notice: notice, exchange)
    }
    guard let own = try await driver.session(exchange) else {
      return exchange.leadOn(to: FormFields.address("/auth/login", ["return_to": exchange.request.head.path]))
    }
    let flow = query["flow"] ?? "pin_unlock"
    guard let definition = exchange.generation.flows[flow] else { throw exchange.refusal(.notFound) }
    let hasPIN = own.account.credentials.contains { $0.rawValue == "pin" }
    // Who has none is led to make one, and comes back.
    if !hasPIN, FlowPurpose(flow: flow) != .pinSet, exchange.generation.flows["pin_set"] != nil {
      return exchange.leadOn(to: FormFields.address("/auth/pin", ["flow": "pin_set", "return_to": returnTo]))
    }
    if hasPIN, flow == "pin_set" { return exchange.leadOn(to: returnTo ?? "/auth/account") }
    if FlowPurpose(flow: flow) == .pinReset { return try await page(.forgotten, flow: flow, view: nil, returnTo: returnTo, nil, exchange) }
    guard definition.steps.first?.choices.contains(where: { $0.rawValue == "pin" }) ?? false else {
      // A flow of the operator's that asks for something else first.
      return exchange.leadOn(to: FormFields.address("/auth/login", ["flow": flow, "return_to": returnTo]))
    }
    let refusal = try await driver.refusal(ofChange: flow, exchange)
    return try await page(Self.task(of: FlowPurpose(flow: flow)), flow: flow, view: nil, returnTo: returnTo, refusal, exchange)
  }

  private static func task(of purpose: FlowPurpose) -> Task {
    switch purpose {
    case .pinSet: .create
    case .pinChange: .change
    case .pinDisable: .disable
    case .pinReset: .forgotten
    default: .unlock
    }
  }

  /// What a flow that is under way waits for; nil where that is nothing of this page.
  private func task(of view: FlowView) -> Task? {
    let due = view.step?.provider ?? (view.choices.count == 1 ? view.choices[0] : nil)
    if view.flow == "pin_reset" {
      if due?.rawValue == "pin" { return .resetAfterCode }
      return view.step == nil ? .forgotten : .reset
    }
    return due?.rawValue == "pin" ? Self.task(of: FlowPurpose(flow: view.flow)) : nil
  }

  // MARK: sending

  private func send(_ exchange: Exchange) async throws(Refusal) -> Response {
    let sent = try await exchange.form()
    let returnTo = exchange.targets.accept(sent["return_to"])
    let flow = sent["flow"] ?? "pin_unlock"
    guard exchange.generation.flows[flow] != nil else { throw exchange.refusal(.notFound) }
    let id = sent["id"].map(FlowID.init(text:))
    let purpose = FlowPurpose(flow: flow)
    let steps = PageFlow(driver: driver)
    if purpose == .pinReset {
      if sent["action"] == "resend", let id {
        do throws(Refusal) {
          _ = try await driver.drive(exchange) { engine, client in await engine.resend(id, client: client) }
          return exchange.leadOn(to: FormFields.address("/auth/pin", ["id": sent["id"], "sent": "1"]))
        } catch {
          return try await refused(error, sent, flow, id, returnTo, [], exchange)
        }
      }
      if sent["action"] == "send" { return try await sendReset(sent, returnTo, exchange) }
    }
    var inputs: [String: InputValue] = [:]
    for name in ["pin", "new_pin", "code"] { if let text = sent[name] { inputs[name] = .text(text) } }
    if sent["check"] != nil {
      // The current passcode alone, at its own step: proved as it is to unlock, and counted as there.
      let outcome = await steps.begin("pin_unlock", nil, "pin", ["pin": .text(sent["pin"] ?? "")], returnTo: nil, exchange)
      switch outcome.result {
      case .success:
        var response = Response.json(.members(["right": .flag(true)]))
        response.setCookies(outcome.cookies)
        return response
      case .failure(let refusal): return try await refused(refusal, sent, flow, nil, returnTo, outcome.cookies, exchange)
      }
    }
    if purpose == .pinSet || purpose == .pinChange || purpose == .pinReset, sent["confirm"] != sent["new_pin"] {
      return try await refused(exchange.refusal(.pinMismatch, field: "confirm"), sent, flow, id, returnTo, [], exchange)
    }
    let outcome: PageFlow.Outcome
    if let id {
      let provider =
        sent["code"] == nil ? "pin" : try await driver.engine.view(id, client: try await driver.caller(exchange)).get().step?.provider.rawValue
      outcome = await steps.prove(id, provider ?? "pin", inputs, exchange)
    } else {
      outcome = await steps.begin(flow, nil, "pin", inputs, returnTo: returnTo, exchange)
    }
    switch outcome.result {
    case .success(let driven): return exchange.leadOn(to: NextPage.address(of: driven.view), outcome.cookies)
    // Nothing of a flow that is made anew at each try has to be kept.
    case .failure(let refusal): return try await refused(refusal, sent, flow, id, returnTo, outcome.cookies, exchange)
    }
  }

  /// Sends the code of a reset: to the verified email, else to the phone.
  private func sendReset(_ sent: FormFields, _ returnTo: String?, _ exchange: Exchange) async throws(Refusal) -> Response {
    let byEmail = try await goesByEmail(exchange)
    let outcome = await PageFlow(driver: driver).begin(
      "pin_reset", nil, byEmail ? "email_code" : "phone_otp", [:], returnTo: returnTo, exchange)
    switch outcome.result {
    case .success(let begun): return exchange.leadOn(to: NextPage.address(of: begun.view), outcome.cookies)
    case .failure(let refusal): return try await refused(refusal, sent, "pin_reset", nil, returnTo, outcome.cookies, exchange)
    }
  }

  /// Whether the code of a reset goes to the verified address, where that is not too new.
  private func goesByEmail(_ exchange: Exchange) async throws(Refusal) -> Bool {
    guard exchange.generation.flows["pin_reset"] != nil else { return false }
    let offered = await driver.engine.offers("pin_reset", client: try await driver.caller(exchange))
    return (try? offered.get())?.contains("email_code") ?? false
  }

  private func refused(
    _ refusal: Refusal, _ sent: FormFields, _ flow: String, _ id: FlowID?, _ returnTo: String?, _ cookies: [String], _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    switch refusal.code {
    case .unauthenticated: return exchange.leadOn(to: FormFields.address("/auth/login", ["return_to": returnTo]))
    case .flowNotFound, .flowExpired: throw refusal
    default: break
    }
    exchange.note(refusal)
    var view: FlowView?
    if let id { view = try? await driver.engine.view(id, client: try await driver.caller(exchange)).get() }
    let task = view.flatMap { self.task(of: $0) } ?? Self.task(of: FlowPurpose(flow: flow))
    var response = try await page(task, flow: flow, view: view, returnTo: returnTo, refusal, exchange)
    response.addRefusalHeaders(refusal)
    response.setCookies(cookies)
    return response
  }

  // MARK: the page

  struct Field: Decodable {
    let name: String
    let label: String
    let autocomplete: String
    /// Digits of a code may be seen; those of a passcode not.
    let isSecret: Bool
  }

  struct Model: PageModel {
    static let template = PageTemplate.pin
    let heading: String
    let isLock: Bool
    let isForgotten: Bool
    let forgotMessage: String
    let forgotButton: String
    let canForget: Bool
    let fields: [Field]
    let button: String
    let action: String
    let id: String?
    let flow: String
    let returnTo: String?
    let back: String
    let forgot: String
    /// Where the page is found again.
    let here: String
    let sentTo: String?
    let state: String
    let notice: String?
    let problem: String?
    let code: String?
    let wait: Countdown?
    let waitLabel: String
    /// What its end does, for scripts.
    let then: String
    let confirms: String?
    let checks: Bool
    let isOff: Bool
    let stressesSupport: Bool
  }

  private func page(
    _ task: Task, flow: String, view: FlowView?, returnTo: String?, _ refusal: Refusal?, notice: String? = nil, _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    let words = pages.words(exchange)
    let byEmail: Bool
    if let step = view?.step { byEmail = step.provider.rawValue == "email_code" } else { byEmail = try await goesByEmail(exchange) }
    let field = { (name: String, label: String, autocomplete: String) in
      Field(name: name, label: words[label], autocomplete: autocomplete, isSecret: name != "code")
    }
    let current = field("pin", task == .unlock ? "enter_passcode" : "enter_current_passcode", "current-password")
    let isNew = task == .create
    let new = field("new_pin", isNew ? "create_a_passcode" : "enter_new_passcode", "new-password")
    let again = field("confirm", isNew ? "confirm_passcode" : "confirm_new_passcode", "new-password")
    let fields: [Field] =
      switch task {
      case .create, .resetAfterCode: [new, again]
      case .change: [current, new, again]
      case .unlock, .disable: [current]
      case .reset: [field("code", byEmail ? "enter_reset_code" : "enter_reset_code_phone", "one-time-code"), new, again]
      case .forgotten: []
      }
    let (heading, button): (String, String) =
      switch task {
      case .create: ("set_passcode", "save_passcode")
      case .change: ("change_passcode", "save_passcode")
      case .unlock: ("enter_passcode", "unlock")
      case .disable: ("disable_passcode", "turn_off")
      case .reset, .resetAfterCode: ("reset_passcode", "save_passcode")
      case .forgotten: ("forgot_passcode", "continue")
      }
    let isLocked = refusal?.code == .tooManyAttempts || refusal?.code == .disabled
    var problem = refusal.map { words.sentenceWithTries(of: $0) }
    let isTooSoon = refusal?.code == .resendTooSoon
    if isTooSoon { problem = words.translated(RefusalCode.resendTooSoon.sentence) }
    let id = view?.id.secret.reveal()
    let here = FormFields.address("/auth/pin", ["id": id, "flow": id == nil ? flow : nil, "return_to": returnTo])
    let model = Model(
      heading: words[heading], isLock: task == .unlock, isForgotten: task == .forgotten,
      forgotMessage: words[byEmail ? "forgot_message" : "forgot_message_phone"],
      forgotButton: words[byEmail ? "send_reset_email" : "send_reset_code"],
      canForget: task != .create && exchange.generation.flows["pin_reset"] != nil && task != .reset && task != .resetAfterCode, fields: fields,
      button: words[button], action: "/auth/pin", id: id, flow: flow, returnTo: returnTo,
      back: NextPage.back(returnTo),
      forgot: FormFields.address("/auth/pin", ["flow": "pin_reset", "return_to": returnTo]), here: here, sentTo: view?.step?.sentTo,
      state: refusal == nil ? "open" : isLocked ? "locked" : "wrong", notice: notice.map { words[$0] }, problem: problem, code: refusal?.code.name,
      wait: isLocked || isTooSoon ? refusal?.retryAfter.map(Countdown.init) : nil,
      waitLabel: words[isTooSoon ? "resend_in" : "try_again_in"], then: isTooSoon ? "enable" : "reload",
      confirms: ChangeProof.address(after: refusal, backTo: FormFields.address("/auth/pin", ["flow": flow, "return_to": returnTo])),
      checks: task == .change, isOff: isLocked, stressesSupport: isLocked)
    return pages.page(model, title: model.heading, status: refusal?.code.httpStatus ?? .ok, at: here, exchange)
  }
}
