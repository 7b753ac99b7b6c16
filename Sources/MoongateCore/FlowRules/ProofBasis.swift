import MoongateSDK

/// What the proofs of a flow relied on. It is judged again when the flow completes, because an account can change while
/// a flow waits.
///
/// Attack: a code is sent to a number, or a reset is parked after its code; the owner replaces the number; then the
/// flow is completed, and the old number is the account's again.
package struct ProofBasis: Sendable, Equatable, Codable {
  /// `Account.epoch` when the account became known; nil while it is not.
  package var epoch: Int?
  /// The identifiers that were proved and that the account had at that moment, verified or claimed.
  package var held: [Identifier] = []
  /// Steps that proved an identifier which is new to the account. They are no factors: they are not in `passed`.
  ///
  /// Attack: with a stolen session the thief proves a number of their own, and a route that asks for a fresh code lets
  /// them in.
  package var introduced: [PassedStep] = []
  /// The account that held the new identifier when its code was sent.
  package var holder: AccountVersion?

  package init(epoch: Int?) { self.epoch = epoch }
}

/// Whose proof a step was, as far as the core knows when it has passed.
struct ProofSubject: Sendable {
  /// nil where the proof is nobody's yet.
  var account: AccountVersion?
  /// Of what was proved, the identifiers that the account had.
  var held: [Identifier] = []
  /// The account that holds the new identifier.
  var holder: AccountVersion?
  /// The provider that the account has to pass next, because what was proved leads to it and does not open it.
  var confirmedBy: ProviderName?
}

/// A step that has passed, as the machine is told of it.
package struct PassedProof: Sendable {
  package let step: PassedStep
  /// What was proved, the most specific first.
  package var proved: [Identifier] = []
  /// Of it, what the account had already.
  package var held: [Identifier] = []
  /// Whose proof it was; nil where it is nobody's yet.
  package var account: AccountVersion?
  /// False where a secret was only set: setting a PIN is not passing it.
  package var isFactor = true
  /// The account that holds the new identifier.
  package var holder: AccountVersion?

  package init(_ step: PassedStep, account: AccountVersion? = nil) {
    self.step = step
    self.account = account
  }
}
