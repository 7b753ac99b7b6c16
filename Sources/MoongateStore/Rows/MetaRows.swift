import MoongateCore

/// The owner of the store, and the latest time that it has recorded.
enum MetaRows {
  static func latestMoment(_ rows: some SQLTransaction) throws -> Timestamp {
    try rows.row("SELECT moment FROM meta")?.moment(0) ?? Timestamp(milliseconds: 0)
  }

  /// Assigns a store without an owner to the key.
  /// - Returns: whether the store belongs to this key, and its latest time.
  static func assignOwner(fingerprint: [UInt8], _ rows: some SQLTransaction) throws -> (isOwn: Bool, moment: Timestamp)
  {
    try rows.run(
      "INSERT INTO meta (id, fingerprint, moment) VALUES (1, ?1, 0) ON CONFLICT DO NOTHING", [.bytes(fingerprint)])
    guard let meta = try owner(rows) else { throw damaged("head") }
    return (meta.fingerprint == fingerprint, meta.moment)
  }

  /// The fingerprint of the owning key and the latest time; nil if the store has no owner yet.
  static func owner(_ rows: some SQLTransaction) throws -> (fingerprint: [UInt8], moment: Timestamp)? {
    try rows.row("SELECT fingerprint, moment FROM meta").map { meta in (try meta.bytes(0), try meta.moment(1)) }
  }

  /// - Returns: false if the store belongs to neither key.
  static func replaceFingerprint(_ old: [UInt8], with new: [UInt8], _ rows: some SQLTransaction) throws -> Bool {
    try rows.changes(
      "UPDATE meta SET fingerprint = ?2 WHERE fingerprint = ?1 OR fingerprint = ?2", [.bytes(old), .bytes(new)]) > 0
  }
}
