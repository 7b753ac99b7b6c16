import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// Removes a factor of an account.
package typealias FactorResetting =
  @Sendable (ProviderName, _ account: String, _ by: OperatorIdentity, ClientContext) async throws(StoreFault) ->
  FactorReset

/// `/accounts`: finds, locks, unlocks and deletes accounts, and ends their sessions. `moongate account` does the same.
struct AccountCalls: Sendable {
  /// The number of accounts per page.
  private static let most = 1_000

  let administration: AccountAdministration
  let clock: any GatewayClock
  let adminGuard: AdminGuard
  let suggestion: AdminQuery.Suggestion
  let reset: FactorResetting

  /// More than 60 lines: an endpoint for each call.
  var endpoints: [Endpoint] {
    [
      // All accounts by pages, or those that `name` identifies: by id, phone number or email address.
      Endpoint(.call, .accounts) { exchange throws(Refusal) in
        let query = try AdminQuery(exchange, known: ["name", "after"], suggestion: suggestion)
        let accounts = try await exchange.mappingFaults { () async throws(StoreFault) in
          if let name = query["name"] {
            return try await administration.accounts(named: name, region: exchange.gateway.region)
          }
          return try await administration.accounts(after: query["after"], limit: Self.most)
        }
        return .json(.list(accounts.map { .operated($0) }))
      },
      Endpoint(.call, .account) { exchange throws(Refusal) in
        let account = try await account(exchange)
        let overview = try await exchange.mappingFaults { () async throws(StoreFault) in
          try await administration.overview(of: account, in: exchange.generation)
        }
        return .json(.overview(overview, at: clock.now()))
      },
      Endpoint(.call, .accountSessions) { exchange throws(Refusal) in
        let account = try await account(exchange)
        let sessions = try await exchange.mappingFaults { () async throws(StoreFault) in
          try await administration.sessions(of: account.id)
        }
        return .json(.list(sessions.map { .listed($0) }))
      },
      Endpoint(.call, .accountDevices) { exchange throws(Refusal) in
        let account = try await account(exchange)
        let devices = try await exchange.mappingFaults { () async throws(StoreFault) in
          try await administration.devices(of: account.id)
        }
        return .json(.list(devices.map { .device($0) }))
      },
      Endpoint(.call, .removeAccountDevice) { exchange throws(Refusal) in
        let account = try await account(exchange)
        let administration = acting(exchange)
        let outcome = try await exchange.mappingFaults { () async throws(StoreFault) in
          try await administration.removeDevice(exchange.parameters[1], of: account.id)
        }
        guard outcome == .done else {
          throw exchange.refusal(.notFound, detail: "The account does not trust such a device.")
        }
        return .nothing
      },
      Endpoint(.call, .exportAccountByOperator) { exchange throws(Refusal) in
        let account = try await account(exchange)
        let administration = acting(exchange)
        guard
          let export = try await exchange.mappingFaults({ () async throws(StoreFault) in
            try await administration.export(account.id)
          })
        else {
          throw unknown(exchange)
        }
        return .json(.export(export))
      },
      act(.lockAccount, known: ["reason"]) { administration, id, query throws(StoreFault) in
        try await administration.lock(id, because: query["reason"])
      },
      Endpoint(.call, .unlockAccount) { exchange throws(Refusal) in
        let account = try await account(exchange)
        let administration = acting(exchange)
        let ended = try await exchange.mappingFaults { () async throws(StoreFault) in
          try await administration.unlock(account.id, in: exchange.generation)
        }
        guard let ended else { throw unknown(exchange) }
        if ended.isPending {
          throw exchange.refusal(.disabled, detail: "The account is part of an import that is not complete.")
        }
        return .json(.unlocking(ended, of: account.id, at: clock.now()))
      },
      act(.disableAccount, known: ["reason"]) { administration, id, query throws(StoreFault) in
        try await administration.disable(id, because: query["reason"])
      },
      Endpoint(.call, .resetFactor) { exchange throws(Refusal) in try await resetFactor(exchange) },
      act(.endAccountSessions) { administration, id, _ throws(StoreFault) in
        try await administration.endSessions(of: id)
      },
      act(.deleteAccountByOperator) { administration, id, _ throws(StoreFault) in
        try await administration.delete(id)
      },
    ]
  }

  private func resetFactor(_ exchange: Exchange) async throws(Refusal) -> Response {
    guard let provider = ProviderName(rawValue: exchange.parameters[1]) else { throw none(exchange) }
    let account = try await account(exchange)
    let client = ClientContext(
      decision: exchange.decision, address: exchange.client.address, userAgent: nil, browser: nil, session: nil)
    let identity = adminGuard.identity(exchange)
    switch try await exchange.mappingFaults({ () async throws(StoreFault) in
      try await reset(provider, account.id, identity, client)
    }) {
    case .done: return .nothing
    case .unknown: throw unknown(exchange)
    case .none: throw none(exchange)
    }
  }

  /// - Parameter known: the query parameters of the operation.
  private func act(
    _ operation: Operation, known: [String] = [],
    _ act:
      @escaping @Sendable (AccountAdministration, String, AdminQuery) async throws(StoreFault) ->
      AccountAdministration.Outcome
  ) -> Endpoint {
    Endpoint(.call, operation) { exchange throws(Refusal) in
      let query = try AdminQuery(exchange, known: known, suggestion: suggestion)
      let account = try await account(exchange)
      let administration = acting(exchange)
      let outcome = try await exchange.mappingFaults { () async throws(StoreFault) in
        try await act(administration, account.id, query)
      }
      guard outcome == .done else { throw unknown(exchange) }
      return .nothing
    }
  }

  /// The account that the path identifies: by id, phone number or email address.
  /// - Throws: 404 if none exists; 400 if there are several.
  private func account(_ exchange: Exchange) async throws(Refusal) -> Account {
    guard let name = exchange.decodedParameter(0) else { throw unknown(exchange) }
    let found = try await exchange.mappingFaults { () async throws(StoreFault) in
      try await administration.accounts(named: name, region: exchange.gateway.region)
    }
    guard let account = found.first else { throw unknown(exchange) }
    guard found.count == 1 else {
      throw exchange.refusal(
        .badRequest,
        detail: "That names \(found.count) accounts. Say which by its id: \(found.map(\.id).joined(separator: ", ")).")
    }
    return account
  }

  /// Account administration that records the caller of this request as the actor.
  private func acting(_ exchange: Exchange) -> AccountAdministration {
    administration.acting(as: adminGuard.identity(exchange))
  }

  private func none(_ exchange: Exchange) -> Refusal {
    exchange.refusal(.notFound, detail: "The account has no factor of this provider.")
  }

  private func unknown(_ exchange: Exchange) -> Refusal {
    exchange.refusal(.notFound, detail: "There is no such account.")
  }
}
