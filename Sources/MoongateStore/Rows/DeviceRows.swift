import MoongateCore

/// The devices that accounts trust.
enum DeviceRows {
  /// Trusts a device, or updates when it was seen.
  static func put(_ device: TrustedDevice, _ rows: some SQLTransaction) throws {
    try AccountRows.demandPresent(device.account, rows)
    try rows.run(
      """
      INSERT INTO trusted_device (account, id, created_at, last_seen_at, user_agent) VALUES (?1, ?2, ?3, ?4, ?5)
      ON CONFLICT (account, id) DO UPDATE SET last_seen_at = excluded.last_seen_at, user_agent = excluded.user_agent
      """,
      [
        .text(device.account), .text(device.id), SQLValue(device.createdAt), SQLValue(device.lastSeenAt),
        SQLValue(device.userAgent),
      ])
    try rows.run(
      """
      DELETE FROM trusted_device WHERE account = ?1 AND id NOT IN (
        SELECT id FROM trusted_device WHERE account = ?1 ORDER BY last_seen_at DESC, id LIMIT \(TrustedDevice.mostPerAccount))
      """, [.text(device.account)])
  }

  /// The account's devices that were seen after a time, the one that was seen last first.
  static func all(of account: String, seenAfter moment: Timestamp, _ rows: some SQLTransaction) throws
    -> [TrustedDevice]
  {
    try rows.rows(
      """
      SELECT id, created_at, last_seen_at, user_agent FROM trusted_device
      WHERE account = ?1 AND last_seen_at > ?2 ORDER BY last_seen_at DESC, id
      """, [.text(account), SQLValue(moment)]
    ).map { row in
      TrustedDevice(
        id: try row.text(0), account: account, createdAt: try row.moment(1), lastSeenAt: try row.moment(2),
        userAgent: try row.optionalText(3))
    }
  }

  static func forget(
    _ id: String, of account: String, _ notifications: ChangeNotifications, _ rows: some SQLTransaction
  ) throws {
    try rows.run("DELETE FROM trusted_device WHERE account = ?1 AND id = ?2", [.text(account), .text(id)])
    notifications.add(account: account)
  }

  static func forgetAll(
    of account: String, except kept: String?, _ notifications: ChangeNotifications, _ rows: some SQLTransaction
  ) throws {
    // No ID is empty.
    try rows.run("DELETE FROM trusted_device WHERE account = ?1 AND id <> ?2", [.text(account), .text(kept ?? "")])
    notifications.add(account: account)
  }
}
