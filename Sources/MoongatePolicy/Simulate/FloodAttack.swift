import MoongateCore
import MoongateSDK

/// Requests codes for one user after another, from every address as fast as allowed.
struct FloodAttack {
  /// How long the attack waits if all addresses are refused without a waiting time, in case the refusals depend on the
  /// time of day.
  private static let pause: Duration = .seconds(3600)

  func run(_ stage: Stage) async throws -> Stage {
    try await stage.makePeople(1)
    var person = 1
    // The refusals of a round. A round in which nothing was sent ends with their shortest waiting time.
    var refusals: [Refusal] = []
    var hasSent = false
    while !stage.isOver {
      if let refusal = await send(to: person, stage) { refusals.append(refusal) } else { hasSent = true }
      person += 1
      guard stage.isLastAddress else { continue }
      if refusals.count >= stage.round {
        let waits = refusals.compactMap(\.retryAfter)
        // A policy that always denies ends the attack.
        if waits.isEmpty, !hasSent {
          try await stage.finish(refusals.first)
        } else {
          try await stage.wait(waits.min() ?? Self.pause)
        }
      }
      refusals = []
    }
    return stage
  }

  /// - Returns: the refusal; nil if a code was sent.
  private func send(to person: Int, _ stage: Stage) async -> Refusal? {
    let client = stage.nextAddress()
    do throws(Refusal) {
      let flow = try await stage.gateway.create(stage.target.flow, by: client).get()
      _ = try await stage.gateway.begin(
        flow.id, providers: stage.target.senders(in: stage.target.flow), fields: stage.target.fields(person), by: client
      ).get()
      return nil
    } catch {
      return error
    }
  }
}
