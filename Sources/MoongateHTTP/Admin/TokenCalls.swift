import Hummingbird
import MoongateCore

/// `/tokens`: manages service tokens. `moongate token` does the same, with the same fields.
struct TokenCalls: Sendable {
  let tokens: ServiceTokens
  let adminGuard: AdminGuard

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .serviceTokens) { exchange throws(Refusal) in
        let all = try await exchange.mappingFaults { () async throws(StoreFault) in try await tokens.list() }
        return .json(.list(all.map { .object(document($0)) }))
      },
      Endpoint(.call, .createServiceToken) { exchange throws(Refusal) in
        let fields = try await CallFields(exchange)
        let wanted: ServiceTokens.NewToken
        let (name, groups, expires, networks) = (
          try fields.text("name"), try fields.texts("groups"), try fields.optionalText("expires"),
          try fields.texts("networks")
        )
        do throws(OperatorInputProblem) {
          wanted = try ServiceTokens.NewToken(
            name: name, groups: groups, expires: expires, networks: networks, rules: exchange.generation.accounts)
        } catch {
          throw exchange.refusal(.invalidInput, detail: error.sentence, field: error.field)
        }
        return .json(
          made(try await acting(exchange) { tokens throws(ServiceTokens.Failure) in try await tokens.create(wanted) }),
          status: .created)
      },
      Endpoint(.call, .rotateServiceToken) { exchange throws(Refusal) in
        let text = try await CallFields(exchange).optionalText("overlap")
        let overlap: Duration
        do throws(OperatorInputProblem) {
          overlap = try ServiceTokens.overlap(text)
        } catch {
          throw exchange.refusal(.invalidInput, detail: error.sentence, field: error.field)
        }
        let name = exchange.parameters[0]
        return .json(
          made(
            try await acting(exchange) { tokens throws(ServiceTokens.Failure) in
              try await tokens.rotate(name, overlap: overlap)
            }, overlap))
      },
      Endpoint(.call, .revokeServiceToken) { exchange throws(Refusal) in
        let name = exchange.parameters[0]
        try await acting(exchange) { tokens throws(ServiceTokens.Failure) in try await tokens.revoke(name) }
        return .nothing
      },
    ]
  }

  private func acting<Answer>(
    _ exchange: Exchange, _ act: (_ tokens: ServiceTokens) async throws(ServiceTokens.Failure) -> Answer
  ) async throws(Refusal) -> Answer {
    do {
      return try await act(tokens.acting(as: adminGuard.identity(exchange)))
    } catch {
      switch error {
      case .nameTaken:
        throw exchange.refusal(
          .alreadySet, detail: "There is a token of this name already: rotate it, or revoke it first.", field: "name")
      case .unknown: throw exchange.refusal(.notFound, detail: "There is no such token.")
      case .expired:
        throw exchange.refusal(.notFound, detail: "The token has expired: revoke it, and create a new one.")
      case .store(let fault): throw exchange.refusal(.storeUnavailable, fault: fault.description)
      }
    }
  }

  private func made(_ made: CreatedAccessToken, _ overlap: Duration? = nil) -> JSONValue {
    let previous = overlap.flatMap { $0 > .zero ? made.token.createdAt + $0 : nil }
    let members = document(ServiceToken(token: made.token, previousUntil: previous, isExpired: false))
    return .object(members + [JSONMember(name: "token", value: .text(made.secret.reveal()))])
  }

  private func document(_ found: ServiceToken) -> [JSONMember] {
    let token = found.token
    return [
      JSONMember(name: "id", value: .text(token.id)), JSONMember(name: "name", value: .text(token.name)),
      JSONMember(name: "groups", value: .list(token.groups.map { .text($0.rawValue) })),
      JSONMember(name: "networks", value: .list(token.networks.map { .text($0.description) })),
      JSONMember(name: "created_at", value: .text(token.createdAt.text)),
      JSONMember(name: "expires_at", value: .optional(token.expiresAt?.text)),
      JSONMember(name: "expired", value: .flag(found.isExpired)),
      JSONMember(name: "last_used_at", value: .optional(token.lastUsedAt?.text)),
      JSONMember(name: "last_used_from", value: .optional(token.lastUsedFrom)),
      JSONMember(name: "previous_until", value: .optional(found.previousUntil?.text)),
    ]
  }
}
