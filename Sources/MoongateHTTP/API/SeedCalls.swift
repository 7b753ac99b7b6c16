import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// The calls of the apps that started the project (http.md, "The seeds' own calls"): thin adapters over the same flows,
/// with the same limits and refusals, under the names that those apps use.
struct SeedCalls: Sendable {
  let driver: FlowDriver
  let sessions: SessionCalls
  let clock: any GatewayClock

  private static let flows: Set<String> = ["login", "register", "enter"]

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .post, "/api/auth/send-otp", toleratesSlash: true) { exchange throws(Refusal) in try await sendOTP(exchange) },
      Endpoint(.call, .post, "/api/auth/verify-otp", toleratesSlash: true) { exchange throws(Refusal) in try await verifyOTP(exchange) },
      Endpoint(.call, .post, "/api/auth/logout", toleratesSlash: true) { exchange throws(Refusal) in
        _ = try await CallFields(exchange)
        return try await sessions.signOut(exchange)
      },
    ]
  }

  private func sendOTP(_ exchange: Exchange) async throws(Refusal) -> Response {
    let fields = try await CallFields(exchange)
    let flow = try fields.optionalText("flow") ?? "enter"
    guard Self.flows.contains(flow) else { throw exchange.refusal(.invalidInput, detail: "flow must be login, register or enter.", field: "flow") }
    var inputs: [String: InputValue] = ["phone": .text(try fields.text("phone_number"))]
    if let region = try fields.optionalText("region") { inputs["region"] = .text(region) }
    let created = try await driver.create(flow, returnTo: nil, exchange)
    let begun: FlowDriver.Driven
    do throws(Refusal) {
      begun = try await driver.drive(exchange, as: created) { engine, client in
        await engine.begin(created.view.id, provider: "phone_otp", fields: inputs, client: client)
      }
    } catch {
      throw renamed(error)
    }
    let now = clock.now()
    let seconds = { (moment: Timestamp?) in JSONValue.optional(moment.map { max(0, Int((($0 - now).wholeMilliseconds + 999) / 1000)) }) }
    var response = Response.json(
      .members([
        "verification_id": .text(begun.view.id.secret.reveal()), "expires_in": seconds(begun.view.step?.expiresAt),
        "resend_in": seconds(begun.view.step?.resendAt),
      ]))
    response.setCookies(created.cookies)
    return response
  }

  private func verifyOTP(_ exchange: Exchange) async throws(Refusal) -> Response {
    let fields = try await CallFields(exchange)
    let id = FlowID(text: try fields.text("verification_id"))
    let code = try fields.text("code")
    let driven = try await driver.drive(exchange) { engine, client in await engine.submit(id, fields: ["code": .text(code)], client: client) }
    guard let account = driven.view.account, let token = driven.view.session?.token else {
      var refusal = exchange.refusal(.stepUpRequired)
      refusal.provider = driven.view.choices.first
      refusal.flow = driven.view.flow
      return .problem(refusal, ["flow_id": driven.view.id.secret.reveal()])
    }
    var response = Response.json(.members(["user": user(account), "token": .text(token.reveal())]))
    response.setCookies(driven.cookies)
    return response
  }

  private func user(_ account: AccountView) -> JSONValue {
    guard case .object(let members) = JSONValue.account(account) else { return .null }
    return .object(members + [JSONMember(name: "account_type", value: .text("free"))])
  }

  /// `field` is the name that the client sent (exact.md).
  private func renamed(_ refusal: Refusal) -> Refusal {
    var refusal = refusal
    if refusal.field == "phone" { refusal.field = "phone_number" }
    return refusal
  }
}
