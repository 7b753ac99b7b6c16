import MoongateCore
import MoongateSDK

/// Makes a few guesses at each of many accounts, and stays below all locks.
struct SprayAttack {
  let accounts: Int

  func run(_ environment: AttackEnvironment) async throws -> AttackEnvironment {
    try await environment.makeAccounts(accounts)
    // The earliest time of the next guess at each account that does not cause a lock.
    var ready = [Timestamp](repeating: environment.now, count: accounts)
    let window =
      environment.policy.limits.filter { $0.action == .verify && $0.key.isPersonal }.compactMap { $0.window?.lowest }
      .max()
      ?? .zero
    // The last refusal of an account that cannot be attacked any more.
    var last: Refusal?
    while !environment.isOver {
      if ready.allSatisfy({ $0 >= environment.end }), let last { return try await left(environment, last) }
      var tried = false
      for person in 0..<accounts where !environment.isOver && ready[person] <= environment.now {
        tried = true
        switch try await environment.openFlow(for: person) {
        case .success(let id): try await spray(id, at: person, environment)
        case .failure(let refusal):
          ready[person] = environment.end
          last = refusal
          continue
        case nil: continue
        }
        ready[person] = environment.now + window
      }
      if !tried { try await environment.wait((ready.min() ?? environment.end) - environment.now) }
    }
    return environment
  }

  /// No account can be attacked any more.
  private func left(_ environment: AttackEnvironment, _ refusal: Refusal) async throws -> AttackEnvironment {
    try await environment.finish(refusal)
    return environment
  }

  /// Makes guesses until one attempt remains.
  private func spray(_ flow: FlowID, at person: Int, _ environment: AttackEnvironment) async throws {
    let client = environment.nextAddress()
    var left = try await environment.attemptsLeft(flow, for: person, from: client) ?? 2
    while left > 1, !environment.isOver {
      guard case .wrong = try await environment.guess(flow, for: person, from: client) else { return }
      left -= 1
    }
  }
}
