import MoongateCore

/// The members of groups.
enum GroupRows {
  /// More than five parameters: the columns of the row, and the transaction.
  /// Adds the account to the group or removes it. No effect if that is the case already. Conflicts if the account does
  /// not exist.
  static func set(
    _ account: String, in group: GroupName, _ isMember: Bool, at now: Timestamp, _ notifications: ChangeNotifications,
    _ rows: some SQLTransaction
  ) throws {
    try AccountRows.demandPresent(account, rows)
    let named: [SQLValue] = [.text(group.rawValue), .text(account)]
    let sql =
      isMember
      ? "INSERT INTO group_member (name, account, added_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING"
      : "DELETE FROM group_member WHERE name = ?1 AND account = ?2"
    let changes = try rows.changes(sql, isMember ? named + [SQLValue(now)] : named)
    if changes > 0 { notifications.add(account: account) }
  }

  /// Removes the account from all groups.
  static func clear(_ account: String, _ rows: some SQLTransaction) throws {
    try rows.run("DELETE FROM group_member WHERE account = ?1", [.text(account)])
  }

  static func counts(_ rows: some SQLTransaction) throws -> [GroupName: Int] {
    var counts: [GroupName: Int] = [:]
    for row in try rows.rows("SELECT name, count(*) FROM group_member GROUP BY name ORDER BY name", []) {
      if let name = GroupName(rawValue: try row.text(0)) { counts[name] = Int(try row.integer(1)) }
    }
    return counts
  }

  static func members(of group: GroupName, after account: String?, limit: Int, _ rows: some SQLTransaction) throws
    -> [GroupMember]
  {
    try rows.rows(
      "SELECT account, added_at FROM group_member WHERE name = ?1 AND account > ?2 ORDER BY account LIMIT ?3",
      [.text(group.rawValue), .text(account ?? ""), SQLValue(max(0, limit))]
    ).map { GroupMember(group: group, account: try $0.text(0), addedAt: try $0.moment(1)) }
  }

  static func memberships(of account: String, _ rows: some SQLTransaction) throws -> [GroupMember] {
    try rows.rows("SELECT name, added_at FROM group_member WHERE account = ?1 ORDER BY name", [.text(account)])
      .compactMap { row in
        guard let name = GroupName(rawValue: try row.text(0)) else { return nil }
        return GroupMember(group: name, account: account, addedAt: try row.moment(1))
      }
  }
}
