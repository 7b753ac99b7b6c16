import MoongateCore
import MoongateSDK

/// Guesses the secret of one account whose identifier the attacker knows.
///
/// Plays the best plan for each limit, and the obvious plan, and reports the one with the most guesses.
struct GuessAttack {
  let policy: ProviderPolicy
  let span: Duration

  func run(_ makeEnvironment: () throws -> AttackEnvironment) async throws -> AttackEnvironment {
    // Each limit has its own best plan. The obvious plan is to guess whenever possible.
    let plans = policy.limits.filter { $0.action == .verify }.compactMap { GuessBound($0)?.plan(for: span) }
    var best: AttackEnvironment?
    for plan in plans + [[]] {
      let environment = try makeEnvironment()
      try await environment.makeAccounts(1)
      try await play(plan, environment)
      if environment.guesses > best?.guesses ?? -1 { best = environment }
    }
    return try best ?? makeEnvironment()
  }

  private func play(_ plan: [(guesses: Int, wait: Duration)], _ environment: AttackEnvironment) async throws {
    var flow: FlowID?
    for burst in plan where !environment.isOver {
      let began = environment.now
      var made = 0
      while made < burst.guesses, !environment.isOver {
        let before = environment.guesses
        if let finished = try await step(&flow, environment) { return try await environment.finish(finished.refusal) }
        made += environment.guesses - before
      }
      try await environment.wait(burst.wait - (environment.now - began))
    }
    while !environment.isOver {
      if let finished = try await step(&flow, environment) { return try await environment.finish(finished.refusal) }
    }
  }

  /// An attack that cannot make another guess, with the refusal that ended it, if any.
  private struct FinishedAttack {
    let refusal: Refusal?
  }

  /// Makes one guess, or waits until one is possible.
  private func step(_ flow: inout FlowID?, _ environment: AttackEnvironment) async throws -> FinishedAttack? {
    if flow == nil {
      switch try await environment.openFlow(for: AttackEnvironment.owner) {
      case .success(let opened): flow = opened
      case .failure(let refusal): return FinishedAttack(refusal: refusal)
      case nil: return FinishedAttack(refusal: nil)
      }
    }
    guard let id = flow else { return nil }
    switch try await environment.guess(id, for: AttackEnvironment.owner, from: environment.nextAddress()) {
    case .wrong: return nil
    case .refused(_, let wait):
      try await environment.wait(wait)
      return nil
    case .dead(let refusal):
      flow = nil
      // An expired code can be replaced; a disabled credential cannot.
      return refusal?.code == .disabled ? FinishedAttack(refusal: refusal) : nil
    }
  }
}
