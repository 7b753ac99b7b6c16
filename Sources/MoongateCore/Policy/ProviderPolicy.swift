import MoongateSDK

/// The effective policy of one provider: its defaults with the operator's file over them.
package struct ProviderPolicy: Sendable {
  package let provider: ProviderName
  /// `CodeRule.none` where the provider sends no codes.
  package let code: CodeRule
  /// How long before the first, second, … resend; the last repeats. Empty: no timer.
  package let resendAfter: [Varying<Duration>]
  /// In sorted order of their names.
  package let limits: [Limit]
  package let unknownAccount: UnknownAccount
  /// The text of a message, with `{code}`, `{service}` and `{minutes}`.
  package let message: String
  /// Called before a send is charged, and before a try is.
  package let send: FunctionName?
  package let verify: FunctionName?
  /// What people read where a function denies with one of these reasons.
  package let reasons: [String: String]
  /// Where each effective value was said, by its path (`limits.verify.max`).
  package let locations: [String: SourceLocation]

  package init(
    provider: ProviderName, code: CodeRule, resendAfter: [Varying<Duration>], limits: [Limit],
    unknownAccount: UnknownAccount, message: String,
    send: FunctionName?, verify: FunctionName?, reasons: [String: String] = [:], locations: [String: SourceLocation]
  ) {
    self.provider = provider
    self.code = code
    self.resendAfter = resendAfter
    self.limits = limits
    self.unknownAccount = unknownAccount
    self.message = message
    self.send = send
    self.verify = verify
    self.reasons = reasons
    self.locations = locations
  }
}

/// What a code looks like and how long it lives.
package struct CodeRule: Sendable, Hashable, Codable {
  /// 4 to 10 characters.
  package let length: Int
  package let alphabet: CodeAlphabet
  /// A code lives in `[issued, issued + lifetime)`.
  package let lifetime: Duration

  package init(length: Int, alphabet: CodeAlphabet, lifetime: Duration) {
    self.length = length
    self.alphabet = alphabet
    self.lifetime = lifetime
  }

  /// Of a provider that sends no codes: never made, never compared.
  package static let none = CodeRule(length: 0, alphabet: .digits, lifetime: .zero)
}

/// The characters of a code.
package enum CodeAlphabet: String, Sendable, Codable, CaseIterable {
  case digits
  /// A to Z without those that look like others.
  case letters
  /// Letters and digits without those that look like others.
  case alphanumeric

  /// Every character, each equally likely in a code.
  package var characters: [Character] {
    switch self {
    case .digits: Array("0123456789")
    case .letters: Array("ABCDEFGHJKMNPQRSTUVWXYZ")
    case .alphanumeric: Array("ABCDEFGHJKMNPQRSTUVWXYZ23456789")
    }
  }
}

/// What someone learns who names an account that does not exist.
package enum UnknownAccount: String, Sendable, Codable, CaseIterable {
  /// 404.
  case reveal
  /// The same answer, in the same time, and no message.
  case conceal
}

extension PolicyGeneration {
  /// What people read of `deny "reason"`: the words of the policy that denied, else those of another policy, such as
  /// for a route's `decide`.
  /// - Parameter provider: whose policy denied; nil: a route.
  /// - Returns: nil where no policy has words for it.
  package func text(ofReason reason: String, by provider: ProviderName? = nil) -> String? {
    provider.flatMap { policies[$0]?.reasons[reason] }
      ?? policies.sorted { $0.key < $1.key }.lazy.compactMap { $0.value.reasons[reason] }.first
  }
}
