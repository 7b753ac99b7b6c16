import MoongateCore
import MoongateSDK

/// Codes sent to one person after another, by every address as fast as it is let.
struct FloodAttack {
  /// How long a flood waits that is refused everywhere and is told no time: what refuses may go by the hour.
  private static let pause: Duration = .seconds(3600)

  func run(_ stage: Stage) async throws -> Stage {
    try await stage.makePeople(1)
    var person = 1
    // The refusals of a round; a round in which nothing is sent ends with the shortest wait of them.
    var refusals: [Refusal] = []
    var hasSent = false
    while !stage.isOver {
      if let refusal = await send(to: person, stage) { refusals.append(refusal) } else { hasSent = true }
      person += 1
      guard stage.isLastAddress else { continue }
      if refusals.count >= stage.round {
        let waits = refusals.compactMap(\.retryAfter)
        // A policy that denies whatever comes is not asked for a month.
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

  /// - Returns: why nothing was sent; nil where something was.
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
