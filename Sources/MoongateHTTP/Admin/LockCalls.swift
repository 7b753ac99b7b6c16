import Hummingbird
import MoongateCore
import MoongateSDK

/// `/locks`: those that stand, and lifting one.
struct LockCalls: Sendable {
  let store: any Store
  let audit: AuditTrail
  let clock: any GatewayClock

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .get, "/locks") { exchange throws(Refusal) in
        let locks = try await exchange.asking { () async throws(StoreFault) in try await store.locks(at: clock.now()) }
        return .json(.list(locks.map(document)))
      },
      Endpoint(.call, .delete, "/locks/{}") { exchange throws(Refusal) in
        let now = clock.now()
        let id = exchange.parameters[0]
        guard try await exchange.asking({ () async throws(StoreFault) in try await store.liftLock(id, at: now) }) else {
          throw exchange.refusal(.notFound, detail: "There is no such lock.")
        }
        audit.record(
          AuditEvent(id: exchange.decision, at: now, kind: .lockLifted, address: exchange.client.address.description, detail: ["lock": id]))
        return .nothing
      },
    ]
  }

  private func document(_ lock: LockRecord) -> JSONValue {
    .members([
      "id": .text(lock.id), "provider": .text(lock.provider.rawValue), "limit": .text(lock.limit), "since": .text(lock.since.text),
      "until": .optional(lock.until?.text),
    ])
  }
}
