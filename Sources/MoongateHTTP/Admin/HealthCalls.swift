import Hummingbird
import MoongateCore

/// `/healthz` and `/readyz`.
struct HealthCalls: Sendable {
  let store: any Store
  let clock: any GatewayClock
  /// Whether the gateway has been told to stop, and only finishes what is open.
  let isEnding: @Sendable () -> Bool
  let adminGuard: AdminGuard

  var endpoints: [Endpoint] {
    [
      // Succeeds as long as the process is alive.
      Endpoint(.call, .healthz) { _ throws(Refusal) in .json(.members(["status": .text("ok")])) },
      Endpoint(.call, .readyz) { exchange throws(Refusal) in
        var reasons = isEnding() ? ["The gateway is stopping."] : []
        // Without a token, clients only learn that something is wrong, because the fault names hosts and databases.
        let tellsAll = adminGuard.allows(exchange)
        do throws(StoreFault) { _ = try await store.latestMoment() } catch {
          reasons.append("The store does not answer" + (tellsAll ? ": \(error.description)" : "."))
        }
        if reasons.isEmpty {
          do throws(StoreFault) { try await store.demandWrites(at: clock.now()) } catch {
            reasons.append("The store cannot be written" + (tellsAll ? ": \(error.description)" : "."))
          }
        }
        guard reasons.isEmpty else {
          return .json(
            .members(["status": .text("not ready"), "reasons": .list(reasons.map { .text($0) })]),
            status: .serviceUnavailable)
        }
        return .json(.members(["status": .text("ready"), "generation": .text(exchange.generation.id)]))
      },
    ]
  }
}
