/// The members of groups, as operators add and remove them (`Change.setGroupMembership`).
package protocol GroupStore: Sendable {
  /// How many members each group has, of those that have any: groups that accounts.lua does not define (any more) as
  /// well.
  func groupCounts() async throws(StoreFault) -> [GroupName: Int]
  /// The members of a group in the order of their ids.
  /// - Parameters:
  ///   - account: the one before the first of them; nil: from the beginning.
  ///   - limit: at most so many, 1 or more.
  func members(of group: GroupName, after account: String?, limit: Int) async throws(StoreFault) -> [GroupMember]
  /// The groups that an account was added to, in the order of their names.
  func memberships(of account: String) async throws(StoreFault) -> [GroupMember]
}

/// One account in one group.
package struct GroupMember: Sendable, Equatable {
  package let group: GroupName
  /// Its id.
  package let account: String
  package let addedAt: Timestamp

  package init(group: GroupName, account: String, addedAt: Timestamp) {
    self.group = group
    self.account = account
    self.addedAt = addedAt
  }
}
