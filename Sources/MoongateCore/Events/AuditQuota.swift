/// The parts of the audit trail that are bounded each by itself.
///
/// Attack: junk requests, each refused with a line in the trail, until the lines of a sign-in or of an operator's act
/// are no longer kept.
package enum AuditQuota: Int, Sendable, CaseIterable {
  /// What people do on their way: flows begun, codes sent, events of pages. What an older gateway stores counts here.
  case activity = 0
  /// Sign-ins and sign-outs, locks, changes of accounts, operator acts, generations.
  case security = 1
  /// Requests that were refused.
  case refusals = 2

  /// The most events that are kept.
  package var most: Int { 100_000 }
}
