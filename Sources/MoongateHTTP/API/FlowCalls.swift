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
        let grant = try grant(fields, exchange)
        let remember = try fields.remember()
        let invitation = try fields.invitation()
        let made = try await driver.create(
          name, returnTo: returnTo, grant: grant, remember: remember, invitation: invitation, exchange)
        return answer(made, status: .created)
      },
      Endpoint(.call, .viewFlow) { exchange throws(Refusal) in
        let id = FlowID(text: exchange.parameters[0])
        return answer(try await driver.drive(exchange) { engine, client in await engine.view(id, client: client) })
      },
      Endpoint(.call, .beginStep) { exchange throws(Refusal) in
        let id = FlowID(text: exchange.parameters[0])
        let fields = try await CallFields(exchange)
        let provider = try fields.optionalText("provider")
        let remember = try fields.remember()
        return answer(
          try await driver.drive(exchange) { engine, client in
            await engine.begin(id, provider: provider, fields: fields.inputs, client: client.remembering(remember))
          })
      },
      Endpoint(.call, .submitStep) { exchange throws(Refusal) in
        let id = FlowID(text: exchange.parameters[0])
        let fields = try await CallFields(exchange)
        let remember = try fields.remember()
        return answer(
          try await driver.drive(exchange) { engine, client in
            await engine.submit(id, fields: fields.inputs, client: client.remembering(remember))
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

  /// The grant of the app that receives the result of the flow; nil if none is named.
  private func grant(_ fields: CallFields, _ exchange: Exchange) throws(Refusal) -> Grant? {
    let challenge = try fields.optionalText("code_challenge")
    let address = try fields.optionalText("redirect_to")
    if challenge == nil, address == nil { return nil }
    if let method = try fields.optionalText("code_challenge_method"), method != "S256" {
      throw exchange.refusal(
        .invalidInput, detail: "code_challenge_method must be S256.", field: "code_challenge_method")
    }
    guard let address, let app = exchange.generation.apps.app(receivingAt: address) else {
      throw exchange.refusal(
        .invalidInput,
        detail: "redirect_to must be exactly one of the addresses that redirect_uris of an app in apps.lua lists.",
        field: "redirect_to")
    }
    guard let grant = Grant(client: app.id, redirect: address, challenge: challenge ?? "") else {
      throw exchange.refusal(
        .invalidInput, detail: "code_challenge must be the SHA-256 of your verifier in base64url (RFC 7636, S256).",
        field: "code_challenge")
    }
    return grant
  }

  private func answer(_ driven: FlowDriver.Outcome, status: HTTPResponse.Status = .ok) -> Response {
    var response = Response.json(.flow(driven.view), status: status)
    response.setCookies(driven.cookies)
    return response
  }
}
