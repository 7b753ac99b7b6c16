import MoongateCore
import MoongateSDK
import NIOCore

/// The groups and claims of a session in one event loop, for one generation.
///
/// Each request of the session shares it instead of copying it.
final class SessionEntitlements {
  /// How long a failure is cached: a function that was killed on a busy machine must not refuse a user permanently.
  private static let retryAfter: TimeAmount = .seconds(1)
  /// The maximum number of routes whose headers are cached. It only bounds the memory of one session.
  private static let mostOthers = 8

  /// The version of the generation (`ActiveGeneration.version`).
  let version: UInt64
  let outcome: Result<Entitlements, PolicyFault>
  /// `Remote-User` and the other known identity headers, as header lines.
  private let usual: [UInt8]
  /// What services of routes with `identity` learn, by `RouteIdentity.index`.
  private var others: [(index: Int, lines: [UInt8], authorization: [UInt8])] = []
  private let account: Account
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
    account = snapshot.account
    usual = IdentityHeaders(ServiceIdentity(), of: account, (try? outcome.get()) ?? .none).lines
  }

  /// The known identity headers for the service of a route, as header lines.
  func lines(_ identity: RouteIdentity) -> [UInt8] {
    identity.index == RouteIdentity.usual ? usual : other(identity).lines
  }

  /// The header line of HTTP Basic for the service of a route; empty without.
  func authorization(_ identity: RouteIdentity) -> [UInt8] {
    identity.index == RouteIdentity.usual ? [] : other(identity).authorization
  }

  private func other(_ identity: RouteIdentity) -> (lines: [UInt8], authorization: [UInt8]) {
    if let known = others.first(where: { $0.index == identity.index }) { return (known.lines, known.authorization) }
    let headers = IdentityHeaders(identity.settings, of: account, (try? outcome.get()) ?? .none)
    let made = (lines: headers.lines, authorization: headers.authorization)
    if others.count >= Self.mostOthers { others.removeFirst() }
    others.append((identity.index, made.lines, made.authorization))
    return made
  }

  /// Whether the cached result is still valid.
  func isCurrent(in plan: GenerationPlan, at monotonic: NIODeadline) -> Bool {
    guard version == plan.version else { return false }
    if case .failure = outcome { return monotonic < retryAt }
    return true
  }
}
