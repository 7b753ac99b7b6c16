import MoongateSDK
import Synchronization

/// A hasher that only records its calls.
final class CountingHasher: SecretHasher {
  let asked = Mutex<[String]>([])
  /// Whether the stored hash needs an update.
  let isOld: Bool
  /// What stored hashes begin with.
  let form: String

  init(isOld: Bool = false, form: String = "of ") {
    self.isOld = isOld
    self.form = form
  }

  func hash(_ secret: [UInt8]) async throws -> String {
    asked.withLock { $0.append("hash") }
    return "of " + String(decoding: secret, as: UTF8.self)
  }

  func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict {
    asked.withLock { $0.append(hash == nil ? "nothing" : "verify") }
    // Texts are equal in every normalization form; secrets are not.
    guard hash.map({ Array($0.utf8) }) == Array(form.utf8) + secret else { return .wrong }
    return .right(rehashed: isOld ? "new " + String(decoding: secret, as: UTF8.self) : nil)
  }
}

private struct NoWeb: WebClient {
  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer { throw WebFault(reason: "no web") }
}

extension StepContext {
  /// A step of a user.
  /// - Parameters:
  ///   - email: the identifier read in `begin`.
  ///   - stored: the stored hash; nil for none.
  static func step(
    _ purpose: StepPurpose, in flowPurpose: FlowPurposeKind? = nil, email: String? = "ada@example.com",
    hasAccount: Bool = true,
    stored: String? = "of correct horse",
    state: [UInt8] = [],
    names: [String] = [], hasher: CountingHasher? = CountingHasher()
  ) -> StepContext {
    let identifier = email.flatMap(EmailAddress.init).map(Identifier.init)
    return StepContext(
      flow: "any", flowPurpose: flowPurpose ?? (purpose == .set ? .register : .signIn), purpose: purpose,
      account: hasAccount
        ? StepAccount(
          id: "ac_1", record: stored.map { Array($0.utf8) }, identifiers: [identifier].compactMap(\.self), names: names)
        : nil,
      identifier: identifier, state: state, now: 0, callback: nil,
      tools: StepTools(randomBytes: { [UInt8](repeating: 0, count: $0) }, hasher: hasher, web: NoWeb()))
  }
}

extension ProviderInput {
  static func fields(_ fields: [String: String]) -> ProviderInput {
    ProviderInput(fields: fields.mapValues { .text($0) }, defaultRegion: "IN")
  }
}

extension StepAnswer {
  /// The result in a few words.
  var told: String {
    switch self {
    case .proved(let proof):
      switch proof.record {
      case .keep: "kept"
      case .remove: "removed"
      case .replace(let bytes), .replaceOnce(let bytes): String(decoding: bytes, as: UTF8.self)
      }
    case .refused(let reason), .refusedAndAsked(let reason, _): reason.rawValue
    case .malformed(let problem): "\(problem.reason.rawValue) \(problem.field)"
    case .ask(let fields, _, _): "asks \(fields.map(\.name).joined(separator: ", "))"
    case .redirect: "redirects"
    case .wait: "waits"
    }
  }
}
