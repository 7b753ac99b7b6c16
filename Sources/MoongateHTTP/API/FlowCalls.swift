import HTTPTypes
import Hummingbird
import MoongateCore

/// `/api/auth/flows…`.
struct FlowCalls: Sendable {
  let driver: FlowDriver

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .createFlow) { exchange throws(Refusal) in
        let fields = try await CallFields(exchange)
        let name = try fields.text("flow")
        let returnTo = try fields.optionalText("return_to")
        let app = try app(fields, exchange)
        return answer(try await driver.create(name, returnTo: returnTo, app: app, exchange), status: .created)
      },
      Endpoint(.call, .viewFlow) { exchange throws(Refusal) in
        let id = FlowID(text: exchange.parameters[0])
        return answer(try await driver.drive(exchange) { engine, client in await engine.view(id, client: client) })
      },
      Endpoint(.call, .beginStep) { exchange throws(Refusal) in
        let id = FlowID(text: exchange.parameters[0])
        let fields = try await CallFields(exchange)
        let provider = try fields.optionalText("provider")
        return answer(
          try await driver.drive(exchange) { engine, client in
            await engine.begin(id, provider: provider, fields: fields.inputs, client: client)
          })
      },
      Endpoint(.call, .submitStep) { exchange throws(Refusal) in
        let id = FlowID(text: exchange.parameters[0])
        let fields = try await CallFields(exchange)
        return answer(
          try await driver.drive(exchange) { engine, client in
            await engine.submit(id, fields: fields.inputs, client: client)
          })
      },
      Endpoint(.call, .resendCode) { exchange throws(Refusal) in
        let id = FlowID(text: exchange.parameters[0])
        _ = try await CallFields(exchange)
        return answer(try await driver.drive(exchange) { engine, client in await engine.resend(id, client: client) })
      },
      Endpoint(.call, .skipStep) { exchange throws(Refusal) in
        let id = FlowID(text: exchange.parameters[0])
        _ = try await CallFields(exchange)
        return answer(try await driver.drive(exchange) { engine, client in await engine.skip(id, client: client) })
      },
      Endpoint(.call, .deleteFlow) { exchange throws(Refusal) in
        try await driver.engine.delete(FlowID(text: exchange.parameters[0]), client: try await driver.caller(exchange))
          .get()
        return .nothing
      },
    ]
  }

  /// The app that receives the result of the flow; nil if none is named.
  private func app(_ fields: CallFields, _ exchange: Exchange) throws(Refusal) -> AppReturn? {
    let challenge = try fields.optionalText("code_challenge")
    let address = try fields.optionalText("redirect_to")
    if challenge == nil, address == nil { return nil }
    if let method = try fields.optionalText("code_challenge_method"), method != "S256" {
      throw exchange.refusal(
        .invalidInput, detail: "code_challenge_method must be S256.", field: "code_challenge_method")
    }
    guard let address = exchange.targets.accept(app: address) else {
      throw exchange.refusal(
        .invalidInput, detail: "redirect_to must be an address of a host that redirect_hosts in gateway.lua names.",
        field: "redirect_to")
    }
    guard let app = AppReturn(challenge: challenge ?? "", address: address) else {
      throw exchange.refusal(
        .invalidInput, detail: "code_challenge must be the SHA-256 of your verifier in base64url (RFC 7636, S256).",
        field: "code_challenge")
    }
    return app
  }

  private func answer(_ driven: FlowDriver.Outcome, status: HTTPResponse.Status = .ok) -> Response {
    var response = Response.json(.flow(driven.view), status: status)
    response.setCookies(driven.cookies)
    return response
  }
}
