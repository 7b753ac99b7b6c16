import MoongateSDK
import Synchronization

/// A hasher that only records its calls.
final class CountingHasher: SecretHasher {
  let asked = Mutex<[String]>([])
  /// Whether the stored hash needs an update.
  let isOld: Bool

  init(isOld: Bool = false) { self.isOld = isOld }

  func hash(_ secret: [UInt8]) async throws -> String {
    asked.withLock { $0.append("hash") }
    return "of " + String(decoding: secret, as: UTF8.self)
  }

  func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict {
    asked.withLock { $0.append(hash == nil ? "nothing" : "verify") }
    guard hash == "of " + String(decoding: secret, as: UTF8.self) else { return .wrong }
    return .right(rehashed: isOld ? "new " + String(decoding: secret, as: UTF8.self) : nil)
  }
}

private struct NoWeb: WebClient {
  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer { throw WebFault(reason: "no web") }
}

extension StepContext {
  /// A step of a user.
  /// - Parameter stored: the stored hash; nil for none.
  static func step(
    _ purpose: StepPurpose, in flowPurpose: FlowPurposeKind? = nil, stored: String? = "of 739154",
    hasAccount: Bool = true,
    phone: String = "+919876543210",
    hasher: CountingHasher? = CountingHasher()
  ) -> StepContext {
    StepContext(
      flow: "step_up", flowPurpose: flowPurpose, purpose: purpose,
      account: hasAccount
        ? StepAccount(
          id: "ac_1", record: stored.map { Array($0.utf8) },
          identifiers: [Identifier(kind: .phone, value: phone, display: phone)]) : nil,
      identifier: nil, state: [], now: 0, callback: nil,
      tools: StepTools(randomBytes: { [UInt8](repeating: 0, count: $0) }, hasher: hasher, web: NoWeb()))
  }
}

extension ProviderInput {
  static func fields(_ fields: [String: String]) -> ProviderInput {
    ProviderInput(fields: fields.mapValues { .text($0) }, defaultRegion: "IN")
  }
}
