import MoongateCore
import MoongateSDK

/// Requests codes for one user after another, from every address as fast as allowed.
struct FloodAttack {
  /// How long the attack waits if all addresses are refused without a waiting time, in case the refusals depend on the
  /// time of day.
  private static let pause: Duration = .seconds(3600)

  func run(_ environment: AttackEnvironment) async throws -> AttackEnvironment {
    try await environment.makeAccounts(1)
    var person = 1
    // The refusals of a round. A round in which nothing was sent ends with their shortest waiting time.
    var refusals: [Refusal] = []
    var hasSent = false
    while !environment.isOver {
      if let refusal = await send(to: person, environment) { refusals.append(refusal) } else { hasSent = true }
      person += 1
      guard environment.isLastAddress else { continue }
      if refusals.count >= environment.round {
        let waits = refusals.compactMap(\.retryAfter)
        // A policy that always denies ends the attack.
        if waits.isEmpty, !hasSent {
          try await environment.finish(refusals.first)
        } else {
          try await environment.wait(waits.min() ?? Self.pause)
        }
      }
      refusals = []
    }
    return environment
  }

  /// - Returns: the refusal; nil if a code was sent.
  private func send(to person: Int, _ environment: AttackEnvironment) async -> Refusal? {
    let client = environment.nextAddress()
    do throws(Refusal) {
      let flow = try await environment.gateway.create(environment.target.flow, by: client).get()
      _ = try await environment.gateway.begin(
        flow.id, providers: environment.target.senders(in: environment.target.flow),
        fields: environment.target.fields(person), by: client
      ).get()
      return nil
    } catch {
      return error
    }
  }
}
