import MoongateSDK

/// The effective policy of one provider: its defaults, overridden by the operator's file.
package struct ProviderPolicy: Sendable {
  package let provider: ProviderName
  /// `CodeRule.none` if the provider sends no codes.
  package let code: CodeRule
  /// The delay before the first resend, the second, and so on; the last one repeats. Empty: no timer.
  package let resendAfter: [Varying<Duration>]
  /// Sorted by name.
  package let limits: [Limit]
  package let unknownAccount: UnknownAccount
  /// The text of a message, with the placeholders `{code}`, `{service}` and `{minutes}`.
  package let message: String
  /// Called before a send is charged.
  package let send: FunctionName?
  package let verify: FunctionName?
  /// Called with what another site says about a user.
  package let identity: FunctionName?
  /// The text that users see if a function denies with one of these reasons.
  package let reasons: [String: String]
  /// The source location of each effective value, by its path (`limits.verify.max`).
  package let locations: [String: SourceLocation]

  /// More than five parameters: one for each field.
  package init(
    provider: ProviderName, code: CodeRule, resendAfter: [Varying<Duration>], limits: [Limit],
    unknownAccount: UnknownAccount, message: String,
    send: FunctionName?, verify: FunctionName?, identity: FunctionName? = nil, reasons: [String: String] = [:],
    locations: [String: SourceLocation]
  ) {
    self.provider = provider
    self.code = code
    self.resendAfter = resendAfter
    self.limits = limits
    self.unknownAccount = unknownAccount
    self.message = message
    self.send = send
    self.verify = verify
    self.identity = identity
    self.reasons = reasons
    self.locations = locations
  }
}

/// The format and lifetime of a code.
package struct CodeRule: Sendable, Hashable, Codable {
  /// The number of characters, 4 to 10.
  package let length: Int
  package let alphabet: CodeAlphabet
  /// A code is valid in `[issued, issued + lifetime)`.
  package let lifetime: Duration

  package init(length: Int, alphabet: CodeAlphabet, lifetime: Duration) {
    self.length = length
    self.alphabet = alphabet
    self.lifetime = lifetime
  }

  /// For a provider that sends no codes. Never used to make or compare one.
  package static let none = CodeRule(length: 0, alphabet: .digits, lifetime: .zero)
}

/// The alphabet of a code.
package enum CodeAlphabet: String, Sendable, Codable, CaseIterable {
  case digits
  /// A to Z without easily confused letters.
  case letters
  /// Letters and digits without easily confused ones.
  case alphanumeric

  /// All characters, each equally likely in a code.
  package var characters: [Character] {
    switch self {
    case .digits: Array("0123456789")
    case .letters: Array("ABCDEFGHJKMNPQRSTUVWXYZ")
    case .alphanumeric: Array("ABCDEFGHJKMNPQRSTUVWXYZ23456789")
    }
  }
}

/// What a client learns when it names an account that does not exist.
package enum UnknownAccount: String, Sendable, Codable, CaseIterable {
  /// The answer is 404.
  case reveal
  /// The same answer in the same time as for an existing account, and no message.
  case conceal
}

extension PolicyGeneration {
  /// The text that users see for `deny "reason"`: from the policy that denied, otherwise from accounts.lua or another
  /// policy (as for a route's `decide`).
  /// - Parameter provider: the provider whose policy denied; nil for a route and for accounts.lua.
  /// - Returns: nil if neither accounts.lua nor a policy has a text for the reason.
  package func text(ofReason reason: String, by provider: ProviderName? = nil) -> String? {
    provider.flatMap { policies[$0]?.reasons[reason] } ?? accounts.reasons[reason]
      ?? policies.sorted { $0.key < $1.key }.lazy.compactMap { $0.value.reasons[reason] }.first
  }
}
