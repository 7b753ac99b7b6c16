import MoongateCore
import MoongateSDK

/// Guesses the secret of one account whose identifier the attacker knows.
///
/// Plays the best plan for each limit, and the obvious plan, and reports the one with the most guesses.
struct GuessAttack {
  let policy: ProviderPolicy
  let span: Duration

  func run(_ makeStage: () throws -> Stage) async throws -> Stage {
    // Each limit has its own best plan. The obvious plan is to guess whenever possible.
    let plans = policy.limits.filter { $0.action == .verify }.compactMap { GuessBound($0)?.plan(for: span) }
    var best: Stage?
    for plan in plans + [[]] {
      let stage = try makeStage()
      try await stage.makePeople(1)
      try await play(plan, stage)
      if stage.guesses > best?.guesses ?? -1 { best = stage }
    }
    return try best ?? makeStage()
  }

  private func play(_ plan: [(guesses: Int, wait: Duration)], _ stage: Stage) async throws {
    var flow: FlowID?
    for burst in plan where !stage.isOver {
      let began = stage.now
      var made = 0
      while made < burst.guesses, !stage.isOver {
        let before = stage.guesses
        if let over = try await step(&flow, stage) { return try await stage.finish(over.refusal) }
        made += stage.guesses - before
      }
      try await stage.wait(burst.wait - (stage.now - began))
    }
    while !stage.isOver { if let over = try await step(&flow, stage) { return try await stage.finish(over.refusal) } }
  }

  /// No further guesses are possible.
  private struct Over {
    let refusal: Refusal?
  }

  /// Makes one guess, or waits until one is possible.
  private func step(_ flow: inout FlowID?, _ stage: Stage) async throws -> Over? {
    if flow == nil {
      switch try await stage.openFlow(for: Stage.owner) {
      case .success(let opened): flow = opened
      case .failure(let refusal): return Over(refusal: refusal)
      case nil: return Over(refusal: nil)
      }
    }
    guard let id = flow else { return nil }
    switch try await stage.guess(id, for: Stage.owner, from: stage.nextAddress()) {
    case .wrong: return nil
    case .refused(_, let wait):
      try await stage.wait(wait)
      return nil
    case .dead(let refusal):
      flow = nil
      // An expired code can be replaced; a disabled credential cannot.
      return refusal?.code == .disabled ? Over(refusal: refusal) : nil
    }
  }
}
