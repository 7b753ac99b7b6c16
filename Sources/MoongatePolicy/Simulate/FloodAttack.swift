import MoongateCore
import MoongateSDK

/// Codes sent to one person after another, by every address as fast as it is let.
struct FloodAttack {
  func run(_ stage: Stage) async throws -> Stage {
    try await stage.makePeople(1)
    var person = 1
    while !stage.isOver {
      switch try await send(to: person, stage) {
      case .sent: person += 1
      case .tryAnother(let wait):
        person += 1
        if let wait { try await stage.wait(wait) }
      }
    }
    return stage
  }

  private enum Outcome { case sent, tryAnother(after: Duration?) }

  private func send(to person: Int, _ stage: Stage) async throws -> Outcome {
    let client = stage.nextAddress()
    guard case .success(let flow) = await stage.gateway.create(stage.target.flow, by: client) else { return .tryAnother(after: .seconds(1)) }
    let senders = stage.target.senders(in: stage.target.flow)
    switch await stage.gateway.begin(flow.id, providers: senders, fields: stage.target.fields(person), by: client) {
    case .success: return .sent
    case .failure(let refusal):
      // Only when the last of the addresses is out is there a reason to wait.
      return .tryAnother(after: stage.isLastAddress ? refusal.retryAfter ?? .seconds(1) : nil)
    }
  }
}
