import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// The passcode calls: flows of a signed-in user. Each call that passes a step replaces the token.
extension AppAPICalls {
  private static let current = "current_passcode"
  private static let new = "new_passcode"

  var passcodeEndpoints: [Endpoint] {
    [
      endpoint(.setPasscode) { exchange, fields throws(Refusal) in
        try await change(.set, ["new_pin": "passcode"], "Passcode set", exchange, fields)
      },
      endpoint(.changePasscode) { exchange, fields throws(Refusal) in
        try await change(.change, ["pin": Self.current, "new_pin": Self.new], "Passcode changed", exchange, fields)
      },
      endpoint(.verifyPasscode) { exchange, fields throws(Refusal) in
        let driven = try await prove(.unlock, ["pin": "passcode"], exchange, fields)
        return complete(driven, exchange) { _, token in
          .members(["unlocked": .flag(true), "token": .text(token.reveal())])
        }
      },
      endpoint(.disablePasscode) { exchange, fields throws(Refusal) in
        try await change(.disable, ["pin": "passcode"], "Passcode turned off", exchange, fields)
      },
      endpoint(.requestPasscodeReset) { exchange, _ throws(Refusal) in
        try await requestReset(exchange)
      },
      endpoint(.resetPasscode) { exchange, fields throws(Refusal) in try await reset(exchange, fields)
      },
    ]
  }

  private func change(
    _ operation: FlowPurpose.FactorOperation, _ names: KeyValuePairs<String, String>, _ message: String,
    _ exchange: Exchange, _ fields: CallFields
  ) async throws(Refusal) -> Response {
    complete(try await prove(operation, names, exchange, fields), exchange) { _, token in
      .members(["message": .text(message), "token": .text(token.reveal())])
    }
  }

  /// - Parameter names: the app's names of the PIN's fields.
  private func prove(
    _ operation: FlowPurpose.FactorOperation, _ names: KeyValuePairs<String, String>, _ exchange: Exchange,
    _ fields: CallFields
  ) async throws(Refusal) -> FlowDriver.Outcome {
    _ = try await sessions.signedIn(exchange)
    var inputs: [String: InputValue] = [:]
    for (ours, theirs) in names { inputs[ours] = .text(try fields.text(theirs)) }
    return try await run(
      name(of: .factor("pin", operation), exchange), "pin", inputs,
      naming: Dictionary(names.map { ($0.key, $0.value) }) { first, _ in first },
      exchange)
  }

  private func requestReset(_ exchange: Exchange) async throws(Refusal) -> Response {
    let own = try await sessions.signedIn(exchange)
    let flow = name(of: .factor("pin", .reset), exchange)
    let offered = try await driver.engine.offers(flow, client: try await driver.caller(exchange)).get()
    let begun = try await run(flow, offered.contains("email_code") ? "email_code" : "phone_otp", [:], exchange)
    try await remembered.put(begun.view, under: [.reset(session: own.session.id)], for: own, exchange)
    var response = Response.json(.members(["message": .text("Reset code sent")]))
    response.setCookies(begun.cookies)
    return response
  }

  private func reset(_ exchange: Exchange, _ fields: CallFields) async throws(Refusal) -> Response {
    let own = try await sessions.signedIn(exchange)
    let inputs: [String: InputValue] = [
      "code": .text(try fields.text("code")), "new_pin": .text(try fields.text(Self.new)),
    ]
    guard let flow = try await remembered.find(.reset(session: own.session.id), exchange) else {
      throw exchange.refusal(.flowNotFound)
    }
    let driven: FlowDriver.Outcome
    do throws(Refusal) {
      driven = try await driver.drive(exchange) { engine, client in
        await engine.submit(flow.id, fields: inputs, client: client)
      }
    } catch {
      throw error.renamed(["new_pin": Self.new])
    }
    return complete(driven, exchange) { _, token in
      .members(["message": .text("Passcode reset"), "token": .text(token.reveal())])
    }
  }
}
