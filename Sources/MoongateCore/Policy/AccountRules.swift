/// What belongs to an account rather than to a flow: `accounts.lua`.
///
/// A flow file says how a person gets in; these rules say what holds whichever flow that was.
package struct AccountRules: Sendable, Equatable {
  /// How recently a session must have proved something that the account already holds before it changes an identifier or a factor, or exports or
  /// deletes the account.
  package var changeWithin: Duration
  /// How long a newly added phone number or email address cannot authorise changes and resets. It may sign in.
  package var recoveryDelay: Duration
  /// How long an account without any verified identifier is kept after it was last used.
  package var unverifiedLifetime: Duration

  package init(
    changeWithin: Duration = .seconds(600), recoveryDelay: Duration = .seconds(86_400), unverifiedLifetime: Duration = .seconds(30 * 86_400)
  ) {
    self.changeWithin = changeWithin
    self.recoveryDelay = recoveryDelay
    self.unverifiedLifetime = unverifiedLifetime
  }

  /// What holds without an `accounts.lua`.
  package static let standard = AccountRules()
}
