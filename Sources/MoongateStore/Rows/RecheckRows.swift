import MoongateCore
import MoongateSDK

/// When the sites of identities are asked about them again: columns of the identities, so that they are moved and
/// removed with them.
enum RecheckRows {
  static func isAnyDue(at now: Timestamp, _ rows: some SQLTransaction) throws -> Bool {
    try rows.row(
      "SELECT 1 FROM identifier WHERE recheck_due <= ?1 ORDER BY recheck_due LIMIT 1", [SQLValue(now)]) != nil
  }

  /// Attack on ourselves: two gateways use the same refresh token at the same moment. The site takes the second use for
  /// that of a thief, and revokes the token. A claimed row is not due for other gateways.
  static func claim(_ limit: Int, until end: Timestamp, at now: Timestamp, _ rows: some SQLTransaction) throws
    -> [ClaimedRecheck]
  {
    try rows.rows(
      """
      UPDATE identifier SET recheck_due = ?1, recheck_fence = recheck_fence + 1
      WHERE (account, position) IN (
        SELECT account, position FROM identifier WHERE recheck_due <= ?2 ORDER BY recheck_due LIMIT ?3
        \(rows.dialect.words(sqlite: "", postgres: "FOR UPDATE SKIP LOCKED")))
      RETURNING account, kind, value, display, attributes, member_of, rechecked_by, recheck_state, rechecked_at,
        recheck_fence
      """, [SQLValue(end), SQLValue(now), SQLValue(max(0, limit))]
    ).compactMap { row in
      // Attack on ourselves: of all identities, none is rechecked any more because of one damaged row.
      guard let kind = IdentifierKind(rawValue: try row.text(1)), let provider = ProviderName(rawValue: try row.text(6))
      else { return nil }
      let identity = try row.identifier(kind, at: 2, groups: 5)
      let recheck = StoredRecheck(
        provider: provider, sealed: try row.optionalBytes(7), confirmedAt: try row.moment(8), dueAt: end)
      return ClaimedRecheck(
        account: try row.text(0), identity: identity, recheck: recheck, fence: try row.integer(9))
    }
  }

  static func put(
    _ recheck: StoredRecheck?, of identity: Identifier, _ account: String, under fence: Int64?,
    _ rows: some SQLTransaction
  ) throws {
    let named: [SQLValue] = [.text(account)] + identity.named
    var values: [SQLValue] = []
    var set = "rechecked_by = NULL, recheck_state = NULL, rechecked_at = NULL, recheck_due = NULL"
    var condition = ""
    if let recheck {
      set = "rechecked_by = ?4, rechecked_at = ?5, recheck_due = ?6"
      values = [.text(recheck.provider.rawValue), SQLValue(recheck.confirmedAt), SQLValue(recheck.dueAt)]
      if let sealed = recheck.sealed {
        set += ", recheck_state = ?7"
        values.append(.bytes(sealed))
      } else if fence == nil {
        // Attack: a user removes `offline_access` from the address of the sign-in, so that the site issues no refresh
        // token and is never asked. Without a state, the empty one says that there is nothing to ask with.
        set += ", recheck_state = CASE WHEN rechecked_by = ?4 THEN recheck_state ELSE ?7 END"
        values.append(.bytes([]))
      } else {
        condition = " AND rechecked_by = ?4"
      }
    }
    guard let fence else {
      return try rows.run(
        """
        UPDATE identifier SET \(set), recheck_fence = recheck_fence + 1
        WHERE account = ?1 AND kind = ?2 AND value = ?3 AND verified_at IS NOT NULL
        """, named + values)
    }
    let place = named.count + values.count + 1
    try rows.demand(
      """
      UPDATE identifier SET \(set)
      WHERE account = ?1 AND kind = ?2 AND value = ?3 AND verified_at IS NOT NULL AND recheck_fence = ?\(place)\(condition)
      """, named + values + [.integer(fence)], orElse: .recordChanged)
  }
}
