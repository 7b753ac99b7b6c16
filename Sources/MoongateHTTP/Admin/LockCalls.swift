import Hummingbird
import MoongateCore
import MoongateSDK

/// `/locks`: lists the current locks with their accounts or identifiers, and lifts them.
struct LockCalls: Sendable {
  let administration: AccountAdministration
  let clock: any GatewayClock
  let adminGuard: AdminGuard

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .locks) { exchange throws(Refusal) in
        let locks = try await exchange.mappingFaults { () async throws(StoreFault) in
          try await administration.namedLocks(in: exchange.generation)
        }
        return .json(.list(locks.map { .lock($0, at: clock.now()) }))
      },
      // The id of a lock, a phone number, an email address, or the id of an account.
      Endpoint(.call, .clearLock) { exchange throws(Refusal) in
        guard let name = exchange.decodedParameter(0) else { throw none(exchange) }
        let administration = administration.acting(as: adminGuard.identity(exchange))
        let cleared = try await exchange.mappingFaults { () async throws(StoreFault) in
          var count = 0
          for lock in try await administration.locks(
            named: name, region: exchange.gateway.region, in: exchange.generation)
          {
            if try await administration.clear(lock) == .done { count += 1 }
          }
          return count
        }
        guard cleared > 0 else { throw none(exchange) }
        return .nothing
      },
    ]
  }

  private func none(_ exchange: Exchange) -> Refusal { exchange.refusal(.notFound, detail: "There is no such lock.") }
}
