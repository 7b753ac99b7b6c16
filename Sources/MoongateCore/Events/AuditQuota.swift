/// The parts of the audit trail, each with its own bound.
///
/// Attack: junk requests, each refused with an event in the trail, until the events of sign-ins or operators' actions
/// are no longer stored.
package enum AuditQuota: Int, Sendable, CaseIterable {
  /// Steps of users: flows begun, codes sent, events of pages.
  case activity = 0
  /// Sign-ins and sign-outs, locks, changes of accounts, operators' actions, generations.
  case security = 1
  /// Refused requests.
  case refusals = 2

  /// The maximum number of stored events.
  package var most: Int { 100_000 }
}
