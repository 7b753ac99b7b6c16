import Hummingbird
import MoongateCore

/// `/healthz` and `/readyz`.
struct HealthCalls: Sendable {
  let store: any Store
  let adminGuard: AdminGuard

  var endpoints: [Endpoint] {
    [
      // Succeeds as long as the process is alive.
      Endpoint(.call, .healthz) { _ throws(Refusal) in .json(.members(["status": .text("ok")])) },
      Endpoint(.call, .readyz) { exchange throws(Refusal) in
        var reasons: [String] = []
        do throws(StoreFault) { _ = try await store.latestMoment() } catch {
          // Without a token, clients only learn that something is wrong, because the fault names hosts and databases.
          reasons.append(
            adminGuard.allows(exchange)
              ? "The store does not answer: \(error.description)" : "The store does not answer."
          )
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
