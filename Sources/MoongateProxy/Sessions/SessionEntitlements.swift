import MoongateCore
import MoongateSDK
import NIOCore

/// The groups and claims of a session as one event loop remembers them, for one generation.
struct SessionEntitlements {
  /// How long a failure is believed: a function that a busy machine killed must not refuse somebody for good.
  private static let retryAfter: TimeAmount = .seconds(1)

  /// Of the generation (`ActiveGeneration.version`).
  let version: UInt64
  let outcome: Result<Entitlements, PolicyFault>
  /// `Remote-User` and what else is known, as header lines.
  let identity: [UInt8]
  private let retryAt: NIODeadline

  /// Evaluates them.
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

  /// Whether it says what an evaluation now would say.
  func isCurrent(in plan: GenerationPlan, at monotonic: NIODeadline) -> Bool {
    guard version == plan.version else { return false }
    if case .failure = outcome { return monotonic < retryAt }
    return true
  }
}

/// The headers that tell services who a requester is.
struct IdentityHeaders {
  /// In the order in which they are written, with the assertion besides; forward-auth answers always have all of them.
  static let names = ["Remote-User", "Remote-Email", "Remote-Phone", "Remote-Name", "Remote-Groups"]

  /// Each name with its value, empty where that is not known.
  let values: [(name: String, value: String)]

  /// Those of nobody.
  init() { values = Self.names.map { ($0, "") } }

  init(_ account: Account, groups: [GroupName]) {
    let name = [account.firstName, account.lastName].compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: " ")
    let texts = [
      account.id, account.verified(.email)?.value ?? "", account.verified(.phone)?.value ?? "", name,
      groups.headerValue,
    ]
    values = zip(Self.names, texts).map { header, text in
      // Attack: a name with a line end in it would be a header of its own.
      (
        header,
        String(
          String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) })
        )
      )
    }
  }

  /// Those that are known, as lines.
  var lines: [UInt8] { values.flatMap { name, value in value.isEmpty ? [] : Array("\(name): \(value)\r\n".utf8) } }
}
