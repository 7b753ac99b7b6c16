/// Stores the members of groups, which operators change with `Change.setGroupMembership`.
package protocol GroupStore: Sendable {
  /// The number of members of each group that has any, including groups that accounts.lua does not define.
  func groupCounts() async throws(StoreFault) -> [GroupName: Int]
  /// The members of a group in the order of their IDs.
  /// - Parameters:
  ///   - account: the last ID of the previous page; nil for the first page.
  ///   - limit: the maximum number, 1 or more.
  func members(of group: GroupName, after account: String?, limit: Int) async throws(StoreFault) -> [GroupMember]
  /// The groups that an account was added to, sorted by name.
  func memberships(of account: String) async throws(StoreFault) -> [GroupMember]
}

/// An account's membership of a group.
package struct GroupMember: Sendable, Equatable {
  package let group: GroupName
  /// The account's ID.
  package let account: String
  package let addedAt: Timestamp

  package init(group: GroupName, account: String, addedAt: Timestamp) {
    self.group = group
    self.account = account
    self.addedAt = addedAt
  }
}
