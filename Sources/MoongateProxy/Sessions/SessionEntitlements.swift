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

/// The identity headers for upstreams.
struct IdentityHeaders {
  /// The order in which the headers are written, in addition to the assertion. Forward-auth responses always contain
  /// all of them.
  static let names = ["Remote-User", "Remote-Email", "Remote-Phone", "Remote-Name", "Remote-Groups"]

  /// The headers with their values; empty if a value is unknown.
  let values: [(name: String, value: String)]

  /// The headers of an anonymous request.
  init() { values = Self.names.map { ($0, "") } }

  init(_ account: Account, groups: [GroupName]) {
    let name = [account.firstName, account.lastName].compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: " ")
    let texts = [
      account.id, account.verified(.email)?.value ?? "", account.verified(.phone)?.value ?? "", name,
      groups.headerValue,
    ]
    values = zip(Self.names, texts).map { header, text in
      // Attack: a name with a line break would inject a header.
      (
        header,
        String(
          String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) })
        )
      )
    }
  }

  /// The headers with a value, as header lines.
  var lines: [UInt8] { values.flatMap { name, value in value.isEmpty ? [] : Array("\(name): \(value)\r\n".utf8) } }
}
