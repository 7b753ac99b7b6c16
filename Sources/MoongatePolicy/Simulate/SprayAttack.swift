import MoongateCore
import MoongateSDK

/// A few guesses at each of many accounts, and never one that locks.
struct SprayAttack {
  let accounts: Int

  func run(_ stage: Stage) async throws -> Stage {
    try await stage.makePeople(accounts)
    // When each account can be tried again without a lock.
    var ready = [Timestamp](repeating: stage.now, count: accounts)
    let window = stage.policy.limits.filter { $0.action == .verify && $0.key.isPersonal }.compactMap { $0.window?.lowest }.max() ?? .zero
    while !stage.isOver {
      var tried = false
      for person in 0..<accounts where !stage.isOver && ready[person] <= stage.now {
        tried = true
        let id = try await stage.openFlow(for: person)
        guard let id else { ready[person] = stage.end; continue }
        try await spray(id, at: person, stage)
        ready[person] = stage.now + window
      }
      if !tried { try await stage.wait((ready.min() ?? stage.end) - stage.now) }
    }
    return stage
  }

  /// As many guesses as leave one.
  private func spray(_ flow: FlowID, at person: Int, _ stage: Stage) async throws {
    let client = stage.nextAddress()
    var left = try await stage.attemptsLeft(flow, for: person, from: client) ?? 2
    while left > 1, !stage.isOver {
      guard case .wrong = try await stage.guess(flow, for: person, from: client) else { return }
      left -= 1
    }
  }
}
