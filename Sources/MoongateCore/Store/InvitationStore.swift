/// Stores invitations, which operators add with `Change.putInvitation` and flows use with `Change.useInvitation`.
package protocol InvitationStore: Sendable {
  /// The invitation with this code, whether it can be used or not; nil if it never existed, or has expired long ago
  /// (`InvitationLifetime.remembered`).
  func invitation(_ code: TokenHash) async throws(StoreFault) -> Invitation?
  /// The invitations that can be used, in the order of their IDs.
  /// - Parameters:
  ///   - id: the last ID of the previous page; nil for the first page.
  ///   - limit: the maximum number, 1 or more.
  func invitations(after id: String?, limit: Int, at now: Timestamp) async throws(StoreFault) -> [Invitation]
}
