import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// `/accounts`: looking people up, locking and unlocking them, ending their sessions, deleting them. What `moongate account` does too.
struct AccountCalls: Sendable {
  /// Accounts a page.
  private static let most = 1_000

  let desk: AccountDesk
  /// Removes a factor.
  let reset: @Sendable (ProviderName, _ account: String, ClientContext) async throws(StoreFault) -> FactorReset

  var endpoints: [Endpoint] {
    [
      // Everyone by pages, or whoever `name` names: an id, a number, an address.
      Endpoint(.call, .get, "/accounts") { exchange throws(Refusal) in
        let query = try exchange.query()
        let accounts = try await exchange.asking { () async throws(StoreFault) in
          if let name = query["name"] { return try await desk.accounts(named: name, region: exchange.gateway.region) }
          return try await desk.accounts(after: query["after"], limit: Self.most)
        }
        return .json(.list(accounts.map { .operated($0) }))
      },
      Endpoint(.call, .get, "/accounts/{}") { exchange throws(Refusal) in
        let id = exchange.parameters[0]
        let found = try await exchange.asking { () async throws(StoreFault) in
          try await desk.accounts(named: id, region: exchange.gateway.region)
        }
        guard let account = found.first(where: { $0.id == id }) else { throw unknown(exchange) }
        return .json(.operated(account))
      },
      Endpoint(.call, .get, "/accounts/{}/sessions") { exchange throws(Refusal) in
        let sessions = try await exchange.asking { () async throws(StoreFault) in try await desk.sessions(of: exchange.parameters[0]) }
        return .json(.list(sessions.map { .operated($0) }))
      },
      deed(.post, "/accounts/{}/lock") { id throws(StoreFault) in try await desk.lock(id) },
      deed(.post, "/accounts/{}/unlock") { id throws(StoreFault) in try await desk.unlock(id) },
      deed(.post, "/accounts/{}/disable") { id throws(StoreFault) in try await desk.disable(id) },
      Endpoint(.call, .delete, "/accounts/{}/factors/{}") { exchange throws(Refusal) in
        guard let provider = ProviderName(rawValue: exchange.parameters[1]) else { throw none(exchange) }
        let client = ClientContext(
          decision: exchange.decision, address: exchange.client.address, userAgent: nil, browser: nil, session: nil)
        switch try await exchange.asking({ () async throws(StoreFault) in try await reset(provider, exchange.parameters[0], client) }) {
        case .done: return .nothing
        case .unknown: throw unknown(exchange)
        case .none: throw none(exchange)
        }
      },
      deed(.delete, "/accounts/{}/sessions") { id throws(StoreFault) in try await desk.endSessions(of: id) },
      deed(.delete, "/accounts/{}") { id throws(StoreFault) in try await desk.delete(id) },
    ]
  }

  private func deed(
    _ method: HTTPRequest.Method, _ path: String, _ act: @escaping @Sendable (String) async throws(StoreFault) -> AccountDesk.Outcome
  ) -> Endpoint {
    Endpoint(.call, method, path) { exchange throws(Refusal) in
      let outcome = try await exchange.asking { () async throws(StoreFault) in try await act(exchange.parameters[0]) }
      guard outcome == .done else { throw unknown(exchange) }
      return .nothing
    }
  }

  private func none(_ exchange: Exchange) -> Refusal {
    exchange.refusal(.notFound, detail: "The account has no factor of this provider.")
  }

  private func unknown(_ exchange: Exchange) -> Refusal { exchange.refusal(.notFound, detail: "There is no such account.") }
}

extension JSONValue {
  /// An account as its operator sees it.
  static func operated(_ account: Account) -> JSONValue {
    .members([
      "id": .text(account.id), "first_name": .optional(account.firstName), "last_name": .optional(account.lastName),
      "created_at": .text(account.createdAt.text), "last_seen_at": .text(account.lastSeenAt.text), "locked": .flag(account.isLocked),
      "identifiers": .list(
        account.identifiers.map {
          .members([
            "kind": .text($0.identifier.kind.rawValue), "value": .text($0.identifier.value), "verified_at": .optional($0.verifiedAt?.text),
          ])
        }), "credentials": .list(account.credentials.sorted().map { .text($0.rawValue) }),
      "groups": .list(account.groups.sorted().map { .text($0.rawValue) }),
    ])
  }

  fileprivate static func operated(_ session: Session) -> JSONValue {
    .members([
      "id": .text(session.id), "created_at": .text(session.createdAt.text), "last_seen_at": .text(session.lastSeenAt.text),
      "expires_at": .text(session.deadline.text), "aal": .number(session.assuranceLevel), "passed": .passed(session.passed),
      "user_agent": .optional(session.userAgent),
    ])
  }
}
