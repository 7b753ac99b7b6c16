import MoongateCore

/// Whose store it is, and the latest moment that it has recorded.
enum MetaRows {
  static func latestMoment(_ rows: some SQLTransaction) throws -> Timestamp {
    try rows.row("SELECT moment FROM meta")?.moment(0) ?? Timestamp(milliseconds: 0)
  }

  /// Gives a store that is nobody's yet to the key.
  /// - Returns: whether it is this key's; the latest moment.
  static func claim(fingerprint: [UInt8], _ rows: some SQLTransaction) throws -> (isOwn: Bool, moment: Timestamp) {
    try rows.run(
      "INSERT INTO meta (id, fingerprint, moment) VALUES (1, ?1, 0) ON CONFLICT DO NOTHING", [.bytes(fingerprint)])
    guard let meta = try owner(rows) else { throw damaged("head") }
    return (meta.fingerprint == fingerprint, meta.moment)
  }

  /// Whose store it is, and its latest moment; nil where it is nobody's yet.
  static func owner(_ rows: some SQLTransaction) throws -> (fingerprint: [UInt8], moment: Timestamp)? {
    try rows.row("SELECT fingerprint, moment FROM meta").map { meta in (try meta.bytes(0), try meta.moment(1)) }
  }

  /// - Returns: false where it is the store of neither.
  static func replaceFingerprint(_ old: [UInt8], with new: [UInt8], _ rows: some SQLTransaction) throws -> Bool {
    try rows.changes(
      "UPDATE meta SET fingerprint = ?2 WHERE fingerprint = ?1 OR fingerprint = ?2", [.bytes(old), .bytes(new)]) > 0
  }
}
