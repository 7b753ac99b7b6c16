import Foundation
import Hummingbird
import MoongateCore
import MoongateSDK

/// `/locks`: those that stand, with whom they are about, and lifting them.
struct LockCalls: Sendable {
  let desk: AccountAdministration
  let clock: any GatewayClock
  let entrance: AdminGuard

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .get, "/locks", .locks) { exchange throws(Refusal) in
        let locks = try await exchange.asking { () async throws(StoreFault) in
          try await desk.namedLocks(in: exchange.generation)
        }
        return .json(.list(locks.map { .lock($0, at: clock.now()) }))
      },
      // A lock's id, or what a person would say: a number, an address, an account's id.
      Endpoint(.call, .delete, "/locks/{}", .clearLock) { exchange throws(Refusal) in
        guard let name = exchange.parameters[0].removingPercentEncoding else { throw none(exchange) }
        let desk = desk.acting(as: entrance.identity(exchange))
        let cleared = try await exchange.asking { () async throws(StoreFault) in
          var count = 0
          for lock in try await desk.locks(named: name, region: exchange.gateway.region, in: exchange.generation) {
            if try await desk.clear(lock) == .done { count += 1 }
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
