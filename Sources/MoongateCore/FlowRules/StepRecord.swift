import MoongateSDK

/// A step that was begun.
package struct StepRecord: Sendable, Equatable, Codable {
  package private(set) var provider: ProviderName
  package let identifier: Identifier?
  package let isSkippable: Bool
  /// The account that the identifier belongs to, if any.
  package private(set) var account: String?
  /// `Account.epoch` of that account when the step was begun.
  package private(set) var epoch: Int?
  /// For a code to a new identifier: the other account that holds the identifier, if any.
  package var holder: AccountVersion?
  /// If the identifier is unverified: the accounts that claim it and that the step may be about.
  package var claimants: [AccountVersion]?
  /// For code providers: the last issued code.
  package var challenge: Challenge?
  /// In a `fallback`: the codes of its other providers that the user may also enter; nil: none.
  package var alternatives: [SentCode]?
  /// In a `fallback`: the providers that reported that they can never reach the identifier; nil: none.
  package var unreachable: [ProviderName]?
  /// For full providers: their state, sealed.
  @Base64Coded package var state: [UInt8]
  /// For full providers: the fields that they ask for; nil for the declared fields.
  package var fields: [InputField]?
  /// For full providers: the site that the user is redirected to.
  package var redirectTo: String?
  /// For full providers: what the page displays beside the fields. Sealed, because it can be a secret.
  package var shown: SealedBytes?
  /// For full providers: when the step may be polled, if the user decides elsewhere.
  package var wait: StepWait?
  /// For full providers: the fields that another site has posted, until the browser fetches them.
  package var returned: PostedCallback?
  /// For full providers: the record by which they judged first, if they have asked for more since. A step that is begun
  /// again has none.
  package var judgedBy: StoredRecord.Judged?

  /// More than five parameters: everything that is fixed when a step begins.
  package init(
    provider: ProviderName, identifier: Identifier?, isSkippable: Bool, account: AccountVersion?, challenge: Challenge?,
    state: [UInt8] = []
  ) {
    self.provider = provider
    self.identifier = identifier
    self.isSkippable = isSkippable
    self.account = account?.id
    epoch = account?.epoch
    self.challenge = challenge
    self.state = state
  }
}

/// The fields that another site posted (OAuth 2.0 Form Post Response Mode). The cross-site POST carries none of our
/// cookies, so the fields are stored until the same browser returns with the handle that it was given.
package struct PostedCallback: Sendable, Equatable, Codable {
  /// The hash of the handle, which can be used once.
  package let handle: TokenHash
  /// The parameters, sealed, because they include the other site's code.
  package let fields: SealedBytes
  package let expiresAt: Timestamp
}

/// The polling state of a step that waits for a decision elsewhere.
package struct StepWait: Sendable, Equatable, Codable {
  /// The milliseconds between two polls.
  package let interval: Int64
  /// The earliest time of the next poll.
  package var due: Timestamp

  package init(interval: Duration, from now: Timestamp) {
    self.interval = interval.wholeMilliseconds
    due = now + interval
  }

  /// The state after a poll.
  package func polled(at now: Timestamp) -> StepWait { StepWait(interval: .milliseconds(interval), from: now) }
}

/// A code of a step, and the provider that sends it.
package struct SentCode: Sendable, Equatable, Codable {
  package let provider: ProviderName
  package let challenge: Challenge
}

extension StepRecord {
  /// The codes that the user may enter, with `provider`'s code first; empty in a step without codes.
  var codes: [SentCode] {
    (challenge.map { [SentCode(provider: provider, challenge: $0)] } ?? []) + (alternatives ?? [])
  }

  /// The step as if this were its only code.
  func sent(_ code: SentCode) -> StepRecord { of(code.provider, code.challenge) }

  /// The step as if this provider's code were its only one; without a code if the provider has sent none.
  func sent(by provider: ProviderName) -> StepRecord {
    of(provider, codes.first { $0.provider == provider }?.challenge)
  }

  /// The step with this account.
  func about(_ account: AccountVersion) -> StepRecord {
    var step = self
    (step.account, step.epoch) = (account.id, account.epoch)
    return step
  }

  private func of(_ provider: ProviderName, _ challenge: Challenge?) -> StepRecord {
    var step = self
    step.provider = provider
    step.challenge = challenge
    step.alternatives = nil
    return step
  }
}
