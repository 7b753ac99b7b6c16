import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// `send-otp`, `verify-otp` and `logout`.
extension AppAPICalls {
  private static let flows: Set<String> = ["login", "register", "enter"]

  var phoneEndpoints: [Endpoint] {
    [
      endpoint(.sendOTP) { exchange, fields throws(Refusal) in try await sendOTP(exchange, fields) },
      endpoint(.verifyOTP) { exchange, fields throws(Refusal) in try await verifyOTP(exchange, fields) },
      endpoint(.logout, servesAllDomains: true) { exchange, _ throws(Refusal) in
        try await sessions.signOut(exchange)
      },
    ]
  }

  private func sendOTP(_ exchange: Exchange, _ fields: CallFields) async throws(Refusal) -> Response {
    let asked = try fields.optionalText("flow") ?? "enter"
    guard Self.flows.contains(asked) else {
      throw exchange.refusal(.invalidInput, detail: "flow must be login, register or enter.", field: "flow")
    }
    // Without a flow for both, as if registration is closed, users who have an account sign in as before.
    let flow = asked == "enter" && exchange.generation.flows[asked] == nil ? "login" : asked
    var inputs: [String: InputValue] = ["phone": .text(try fields.text("phone_number"))]
    if let region = try fields.optionalText("region") { inputs["region"] = .text(region) }
    if flow == "register", exchange.generation.flows[flow] == nil { throw exchange.refusal(.registrationClosed) }
    let begun = try await run(
      flow, "phone_otp", inputs, naming: ["phone": "phone_number"], invitation: try fields.invitation(), exchange)
    let now = clock.now()
    let seconds = { (moment: Timestamp?) in
      JSONValue.optional(moment.map { max(0, Int((($0 - now).wholeMilliseconds + 999) / 1000)) })
    }
    var response = Response.json(
      .members([
        "verification_id": .text(begun.view.id.secret.reveal()), "expires_in": seconds(begun.view.step?.expiresAt),
        "resend_in": seconds(begun.view.step?.resendAt),
      ]))
    response.setCookies(begun.cookies)
    return response
  }

  private func verifyOTP(_ exchange: Exchange, _ fields: CallFields) async throws(Refusal) -> Response {
    let id = FlowID(text: try fields.text("verification_id"))
    let code = try fields.text("code")
    let driven = try await driver.drive(exchange) { engine, client in
      await engine.submit(id, fields: ["code": .text(code)], client: client)
    }
    return complete(driven, exchange, signedIn)
  }
}
