import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// The form that takes a phone number and sends a code: what `/auth/login` and `/auth/register` have in common.
struct NumberForm: Sendable {
  /// How the two pages differ.
  struct Wording: Sendable {
    let flow: String
    let path: String
    let title: String
    let heading: String
    let subtitle: String
    /// The way to the other page.
    let question: String
    let otherLabel: String
    let otherPath: String
  }

  let wording: Wording
  let driver: FlowDriver
  let pages: PageRenderer

  /// What the template shows.
  private struct Model {
    struct Other {
      let question: String
      let address: String
      let label: String
    }

    let frame: PageRenderer.Frame
    let heading: String
    let subtitle: String
    let action: String
    var flow: String?
    let returnTo: String?
    /// Whether the flow may be begun by Google; the number form is there either way.
    let google: Bool
    var phone: String?
    var problem: String?
    var isInvalid = false
    /// The way to the other page, where that is what the person needs.
    var offer: Other?
    let other: Other
    var stressesSupport = false
  }

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, wording.path) { exchange throws(Refusal) in try await show(exchange) },
      Endpoint(.page, .post, wording.path) { exchange throws(Refusal) in try await send(exchange) },
    ]
  }

  private func show(_ exchange: Exchange) async throws(Refusal) -> Response {
    let query = try exchange.query()
    let returnTo = exchange.targets.accept(query["return_to"])
    guard let text = query["id"] else {
      if try await driver.session(exchange) != nil {
        return .seeOther(returnTo ?? exchange.generation.flows[wording.flow]?.next.returning ?? "/")
      }
      var model = model(exchange, returnTo: returnTo, phone: query["phone"])
      model.problem = refused(query)
      return page(model, exchange)
    }
    // Edit: the same flow, another number. A flow that is dead leaves an empty form.
    let id = FlowID(text: text)
    let caller = try await driver.caller(exchange)
    guard case .success(let view) = await driver.engine.view(id, client: caller), view.status == .pending else {
      return page(model(exchange, returnTo: returnTo, phone: nil), exchange)
    }
    var model = model(exchange, returnTo: returnTo, phone: view.step?.sentTo)
    model.flow = text
    model.problem = refused(query)
    return page(model, exchange)
  }

  /// The sentence of what a person comes back from another site with.
  private func refused(_ query: FormFields) -> String? {
    query["refused"].flatMap(RefusalCode.init(reserved:)).flatMap { NextPage.shown.contains($0) ? $0.sentence : nil }
  }

  private func send(_ exchange: Exchange) async throws(Refusal) -> Response {
    let form = try await exchange.form()
    let returnTo = exchange.targets.accept(form["return_to"])
    let provider = form["provider"] ?? "phone_otp"
    var inputs: [String: InputValue] = provider == "phone_otp" ? ["phone": .text(form["phone"] ?? "")] : [:]
    if let region = form["region"] { inputs["region"] = .text(region) }
    var attempt: Result<FlowDriver.Driven, Refusal>?
    var id = form["id"].map(FlowID.init(text:))
    var created: FlowDriver.Driven?
    if let id { attempt = await begin(id, provider, inputs, exchange, as: nil) }
    if attempt.flatMap(\.deadFlow) ?? true {
      do throws(Refusal) {
        let made = try await driver.create(wording.flow, returnTo: returnTo, exchange)
        created = made
        id = made.view.id
        attempt = await begin(made.view.id, provider, inputs, exchange, as: made)
      } catch {
        attempt = .failure(error)
      }
    }
    switch attempt {
    case .success(let begun):
      var response =
        begun.view.step?.redirectTo.map { pages.leave(to: $0, exchange) } ?? Response.seeOther(NextPage.address(of: begun.view))
      response.setCookies((created?.cookies ?? []) + begun.cookies)
      return response
    case .failure(let refusal):
      // The living code page of this number, rather than a refusal to send what was sent already.
      if refusal.code == .resendTooSoon, let id, case .success(let view) = await driver.engine.view(id, client: try await driver.caller(exchange)),
        view.step?.sentTo != nil
      {
        return .seeOther(FormFields.address("/auth/verify", ["id": id.secret.reveal()]))
      }
      var model = model(exchange, returnTo: returnTo, phone: form["phone"])
      model.flow = id?.secret.reveal()
      explain(refusal, in: &model, exchange, returnTo: returnTo)
      if provider != "phone_otp", refusal.code == .busy { model.problem = RefusalCode.oauthFailed.sentence }
      exchange.note(refusal)
      var response = page(model, exchange, status: refusal.code.httpStatus)
      response.addRefusalHeaders(refusal)
      response.setCookies(created?.cookies ?? [])
      return response
    case nil: throw exchange.refusal(.flowNotFound)
    }
  }

  private func begin(
    _ id: FlowID, _ provider: String, _ inputs: [String: InputValue], _ exchange: Exchange, as created: FlowDriver.Driven?
  ) async -> Result<FlowDriver.Driven, Refusal> {
    do throws(Refusal) {
      return .success(
        try await driver.drive(exchange, as: created) { engine, client in
          await engine.begin(id, provider: provider, fields: inputs, client: client)
        })
    } catch {
      return .failure(error)
    }
  }

  private func model(_ exchange: Exchange, returnTo: String?, phone: String?) -> Model {
    Model(
      frame: pages.frame(wording.title, exchange.gateway), heading: wording.heading, subtitle: wording.subtitle, action: wording.path,
      returnTo: returnTo, google: offersGoogle(exchange), phone: phone.map { String($0.prefix(64)) }, other: other(returnTo: returnTo, phone: phone))
  }

  private func offersGoogle(_ exchange: Exchange) -> Bool {
    let name: ProviderName = "google_oauth"
    return exchange.generation.policies[name] != nil && exchange.generation.flows[wording.flow]?.steps.first?.choices.contains(name) ?? false
  }

  /// The other page, to which the number is carried.
  private func other(returnTo: String?, phone: String?) -> Model.Other {
    Model.Other(
      question: wording.question,
      address: FormFields.address(wording.otherPath, ["phone": phone.map { String($0.prefix(64)) }, "return_to": returnTo]),
      label: wording.otherLabel)
  }

  private func page(_ model: Model, _ exchange: Exchange, status: HTTPResponse.Status = .ok) -> Response {
    pages.page("number", model, status: status, generation: exchange.generation)
  }

  /// The sentences of this page (seeds.md, S2), where they are not the refusal's own.
  private func explain(_ refusal: Refusal, in model: inout Model, _ exchange: Exchange, returnTo: String?) {
    switch refusal.code {
    case .accountNotFound, .alreadyRegistered:
      model.problem = refusal.sentence
      model.offer = other(returnTo: returnTo, phone: model.phone)
    case .tooManyAttempts, .sendLimit, .rateLimited:
      model.problem = refusal.retryAfter.map { "Too many attempts. Try again in \($0.spokenLength)." } ?? refusal.sentence
      model.stressesSupport = true
    case .resendTooSoon: model.problem = refusal.retryAfter.map { "Resend code in \($0.clockText)" } ?? refusal.sentence
    case .deliveryFailed, .busy, .storeUnavailable, .policyError: model.problem = "Unable to send OTP. Check your connection."
    case .invalidPhone:
      model.problem = refusal.sentence
      model.isInvalid = true
    default: model.problem = refusal.sentence
    }
  }
}

extension Result where Success == FlowDriver.Driven, Failure == Refusal {
  /// Whether the flow cannot be gone on with, so that a new one is due.
  fileprivate var deadFlow: Bool {
    guard case .failure(let refusal) = self else { return false }
    return [.flowNotFound, .flowExpired, .stepNotOpen].contains(refusal.code)
  }
}

extension Duration {
  /// `mm:ss`, from an hour on `h:mm:ss`; rounded up.
  var clockText: String {
    let seconds = max(0, Int((wholeMilliseconds + 999) / 1000))
    let two = { (number: Int) in number < 10 ? "0\(number)" : "\(number)" }
    let tail = "\(two(seconds / 60 % 60)):\(two(seconds % 60))"
    return seconds < 3600 ? tail : "\(seconds / 3600):\(tail)"
  }
}
