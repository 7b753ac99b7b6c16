import Foundation
import GRDB
import MoongateCore
import MoongateSDK

extension LockRecord {
  /// The locks that stand, and what is turned off, oldest first.
  static func all(at now: Timestamp, _ db: Database) throws -> [LockRecord] {
    try db.rows(
      """
      SELECT key, provider, name, disabled_since, NULL FROM counter WHERE disabled_since IS NOT NULL
      UNION ALL
      SELECT key, provider, name, locked_since, locked_until FROM counter WHERE locked_until > ? AND disabled_since IS NULL
      ORDER BY 4, 1
      """, [now.milliseconds]
    ).map { row in
      guard let provider = ProviderName(rawValue: row[1]) else { throw damaged("counter") }
      return LockRecord(
        id: Base64URL.encode(row.bytes(0)), provider: provider, limit: row[2], since: row.optionalMoment(3) ?? now, until: row.optionalMoment(4))
    }
  }

  /// Ends the lock or the disabling with the id.
  /// - Returns: false where none stands.
  static func lift(_ id: String, at now: Timestamp, _ db: Database) throws -> Bool {
    guard let key = Base64URL.decode(id).map({ Data($0) }) else { return false }
    // Its events went when it began. A lock that is over keeps its end: escalation counts from there.
    return try db.run(
      """
      UPDATE counter SET disabled_since = NULL, locked_until = CASE WHEN locked_until > :now THEN :now ELSE locked_until END
      WHERE key = :key AND (locked_until > :now OR disabled_since IS NOT NULL)
      """, ["now": now.milliseconds, "key": key]) > 0
  }
}
