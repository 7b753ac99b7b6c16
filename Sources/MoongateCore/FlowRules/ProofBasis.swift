import MoongateSDK

/// What the proofs of a flow relied on. It is checked again when the flow completes, because an account can change
/// while a flow waits.
///
/// Attack: a code is sent to a number, or a reset is parked after its code; the owner replaces the number; then the
/// flow is completed, and the old number is the account's again.
package struct ProofBasis: Sendable, Equatable, Codable {
  /// `Account.epoch` when the account became known; nil before that.
  package var epoch: Int?
  /// The verified identifiers that the account had at that moment, verified or claimed.
  package var held: [Identifier] = []
  /// Steps that proved an identifier that is new to the account. They are not factors and not in `passed`.
  ///
  /// Attack: with a stolen session the thief proves a number of their own, and is admitted by a route that requires a
  /// fresh code.
  package var introduced: [PassedStep] = []
  /// The account that held the new identifier when its code was sent.
  package var holder: AccountVersion?

  package init(epoch: Int?) { self.epoch = epoch }
}

/// The account that a passed step belongs to, as far as the core knows.
struct ProofSubject: Sendable {
  /// nil if the proof belongs to no account yet.
  var account: AccountVersion?
  /// The verified identifiers that the account already had.
  var held: [Identifier] = []
  /// The account that holds the new identifier.
  var holder: AccountVersion?
  /// The provider that the account must pass next, because the proof identifies the account but does not authenticate
  /// it.
  var confirmedBy: ProviderName?
}

/// A passed step, as the machine receives it.
package struct PassedProof: Sendable {
  package let step: PassedStep
  /// The verified identifiers, most specific first.
  package var proved: [Identifier] = []
  /// Those of them that the account already had.
  package var held: [Identifier] = []
  /// The account that the proof belongs to; nil if none yet.
  package var account: AccountVersion?
  /// False if a secret was only set: setting a PIN is not passing it.
  package var isFactor = true
  /// The account that holds the new identifier.
  package var holder: AccountVersion?

  package init(_ step: PassedStep, account: AccountVersion? = nil) {
    self.step = step
    self.account = account
  }
}
