import HTTPTypes
import Hummingbird
import MoongateCore

/// `/api/auth/flows…` (http.md, "Flows").
struct FlowCalls: Sendable {
  let driver: FlowDriver

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .post, "/api/auth/flows") { exchange throws(Refusal) in
        let fields = try await CallFields(exchange)
        let name = try fields.text("flow")
        let returnTo = try fields.optionalText("return_to")
        return answer(try await driver.create(name, returnTo: returnTo, exchange), status: .created)
      },
      Endpoint(.call, .get, "/api/auth/flows/{}") { exchange throws(Refusal) in
        let id = FlowID(text: exchange.parameters[0])
        return answer(try await driver.drive(exchange) { engine, client in await engine.view(id, client: client) })
      },
      Endpoint(.call, .post, "/api/auth/flows/{}/begin") { exchange throws(Refusal) in
        let id = FlowID(text: exchange.parameters[0])
        let fields = try await CallFields(exchange)
        let provider = try fields.optionalText("provider")
        return answer(
          try await driver.drive(exchange) { engine, client in await engine.begin(id, provider: provider, fields: fields.inputs, client: client) })
      },
      Endpoint(.call, .post, "/api/auth/flows/{}/submit") { exchange throws(Refusal) in
        let id = FlowID(text: exchange.parameters[0])
        let fields = try await CallFields(exchange)
        return answer(try await driver.drive(exchange) { engine, client in await engine.submit(id, fields: fields.inputs, client: client) })
      },
      Endpoint(.call, .post, "/api/auth/flows/{}/resend") { exchange throws(Refusal) in
        let id = FlowID(text: exchange.parameters[0])
        _ = try await CallFields(exchange)
        return answer(try await driver.drive(exchange) { engine, client in await engine.resend(id, client: client) })
      },
      Endpoint(.call, .post, "/api/auth/flows/{}/skip") { exchange throws(Refusal) in
        let id = FlowID(text: exchange.parameters[0])
        _ = try await CallFields(exchange)
        return answer(try await driver.drive(exchange) { engine, client in await engine.skip(id, client: client) })
      },
      Endpoint(.call, .delete, "/api/auth/flows/{}") { exchange throws(Refusal) in
        try await driver.engine.delete(FlowID(text: exchange.parameters[0]), client: try await driver.caller(exchange)).get()
        return .nothing
      },
    ]
  }

  private func answer(_ driven: FlowDriver.Driven, status: HTTPResponse.Status = .ok) -> Response {
    var response = Response.json(.flow(driven.view), status: status)
    response.setCookies(driven.cookies)
    return response
  }
}
