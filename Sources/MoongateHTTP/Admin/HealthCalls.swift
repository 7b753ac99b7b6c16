import Hummingbird
import MoongateCore

/// `/healthz` and `/readyz`.
struct HealthCalls: Sendable {
  let store: any Store

  var endpoints: [Endpoint] {
    [
      // While the process lives.
      Endpoint(.call, .get, "/healthz") { _ throws(Refusal) in .json(.members(["status": .text("ok")])) },
      Endpoint(.call, .get, "/readyz") { exchange throws(Refusal) in
        var reasons: [String] = []
        do throws(StoreFault) { _ = try await store.latestMoment() } catch { reasons.append("The store does not answer: \(error.description)") }
        guard reasons.isEmpty else {
          return .json(.members(["status": .text("not ready"), "reasons": .list(reasons.map { .text($0) })]), status: .serviceUnavailable)
        }
        return .json(.members(["status": .text("ready"), "generation": .text(exchange.generation.id)]))
      },
    ]
  }
}
