import MoongateCore
import MoongateSDK
import NIOCore

/// The groups and claims of a session in one event loop, for one generation.
///
/// It is immutable. Each request of the session shares it instead of copying it.
final class SessionEntitlements {
  /// How long a failure is cached: a function that was killed on a busy machine must not refuse a user permanently.
  private static let retryAfter: TimeAmount = .seconds(1)

  /// The version of the generation (`ActiveGeneration.version`).
  let version: UInt64
  let outcome: Result<Entitlements, PolicyFault>
  /// `Remote-User` and the other known identity headers, as header lines.
  let identity: [UInt8]
  private let retryAt: NIODeadline

  /// Evaluates the groups and claims.
  init(of snapshot: SessionSnapshot, in plan: GenerationPlan, at monotonic: NIODeadline) {
    version = plan.version
    let generation = plan.generation
    outcome = Result { () throws(PolicyFault) in
      try generation.accounts.entitlements(of: snapshot, in: generation) { () throws(PolicyFault) in
        try plan.evaluatorOfLoop()
      }
    }
    retryAt = monotonic + Self.retryAfter
    let groups = (try? outcome.get())?.groups ?? []
    identity = IdentityHeaders(snapshot.account, groups: groups).lines
  }

  /// Whether the cached result is still valid.
  func isCurrent(in plan: GenerationPlan, at monotonic: NIODeadline) -> Bool {
    guard version == plan.version else { return false }
    if case .failure = outcome { return monotonic < retryAt }
    return true
  }
}
