import MoongateCore
import MoongateSDK

/// Makes a few guesses at each of many accounts, and stays below all locks.
struct SprayAttack {
  let accounts: Int

  func run(_ stage: Stage) async throws -> Stage {
    try await stage.makePeople(accounts)
    // The earliest time of the next guess at each account that does not cause a lock.
    var ready = [Timestamp](repeating: stage.now, count: accounts)
    let window =
      stage.policy.limits.filter { $0.action == .verify && $0.key.isPersonal }.compactMap { $0.window?.lowest }.max()
      ?? .zero
    // The last refusal of an account that cannot be attacked any more.
    var last: Refusal?
    while !stage.isOver {
      if ready.allSatisfy({ $0 >= stage.end }), let last { return try await left(stage, last) }
      var tried = false
      for person in 0..<accounts where !stage.isOver && ready[person] <= stage.now {
        tried = true
        switch try await stage.openFlow(for: person) {
        case .success(let id): try await spray(id, at: person, stage)
        case .failure(let refusal):
          ready[person] = stage.end
          last = refusal
          continue
        case nil: continue
        }
        ready[person] = stage.now + window
      }
      if !tried { try await stage.wait((ready.min() ?? stage.end) - stage.now) }
    }
    return stage
  }

  /// No account can be attacked any more.
  private func left(_ stage: Stage, _ refusal: Refusal) async throws -> Stage {
    try await stage.finish(refusal)
    return stage
  }

  /// Makes guesses until one attempt remains.
  private func spray(_ flow: FlowID, at person: Int, _ stage: Stage) async throws {
    let client = stage.nextAddress()
    var left = try await stage.attemptsLeft(flow, for: person, from: client) ?? 2
    while left > 1, !stage.isOver {
      guard case .wrong = try await stage.guess(flow, for: person, from: client) else { return }
      left -= 1
    }
  }
}
