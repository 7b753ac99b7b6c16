import Hummingbird
import MoongateCore

/// `/api/auth/tokens`: the personal tokens of users for their own programs.
struct PersonalTokenCalls: Sendable {
  /// The default lifetime of a token.
  private static let usual = "90d"

  let driver: FlowDriver

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .tokens) { exchange throws(Refusal) in
        let all = try await driver.engine.personalTokens(client: try await driver.caller(exchange)).get()
        return .json(.list(all.map { .object(document($0)) }))
      },
      Endpoint(.call, .createToken) { exchange throws(Refusal) in
        let fields = try await CallFields(exchange)
        let (name, expires) = (try fields.text("name"), try fields.optionalText("expires"))
        guard let lifetime = Duration(asWritten: expires ?? Self.usual) else {
          throw exchange.refusal(
            .invalidInput, detail: "expires must be a length of time, such as \"90d\".", field: "expires")
        }
        let made = try await driver.engine.makeToken(
          named: name, for: lifetime, client: try await driver.caller(exchange)
        ).get()
        return .json(
          .object(document(made.token) + [JSONMember(name: "token", value: .text(made.secret.reveal()))]),
          status: .created)
      },
      Endpoint(.call, .revokeToken) { exchange throws(Refusal) in
        try await driver.engine.revokeToken(exchange.parameters[0], client: try await driver.caller(exchange)).get()
        return .nothing
      },
    ]
  }

  private func document(_ token: AccessToken) -> [JSONMember] {
    guard case .object(let members) = JSONValue.personal(token) else { return [] }
    return members
  }
}

extension JSONValue {
  /// A personal token as its owner sees it, without its secret.
  static func personal(_ token: AccessToken) -> JSONValue {
    .members([
      "id": .text(token.id), "name": .text(token.name), "created_at": .text(token.createdAt.text),
      "expires_at": .optional(token.expiresAt?.text),
      "last_used_at": .optional(token.lastUsedAt?.text), "last_used_from": .optional(token.lastUsedFrom),
    ])
  }
}
