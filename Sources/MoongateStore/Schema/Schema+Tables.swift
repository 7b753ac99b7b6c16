extension Schema {
  /// A table that can be read and written as a whole.
  struct Table: Sendable {
    let name: String
    let columns: [Column]
    /// The primary key. Whole tables are read in this order, which is the same in all databases.
    let key: [String]

    /// The indices of the key's columns.
    var keyPlaces: [Int] { key.compactMap { name in columns.firstIndex { $0.name == name } } }
  }

  /// A column and its type.
  struct Column: Sendable {
    enum Kind: Sendable { case integer, text, bytes }

    let name: String
    let kind: Kind

    func value(_ row: some SQLRow, _ place: Int) throws -> SQLValue {
      switch kind {
      case .integer: try row.optionalInteger(place).map(SQLValue.integer) ?? .null
      // A statement of an operator can have stored a NUL in a SQLite file, which PostgreSQL refuses.
      case .text: SQLValue(try row.optionalText(place)?.storable)
      case .bytes: SQLValue(try row.optionalBytes(place))
      }
    }
  }

  /// All tables that both databases have. No table refers to a later one.
  static let tables = [
    table("meta", key: "id", "id fingerprint:bytes moment"),
    table(
      "counter", key: "key",
      "key:bytes provider:text name:text counted oldest locked_since locked_until lock_level disabled_since expires_at"),
    table("pending", key: "counter reservation", "counter:bytes reservation:bytes at expires_at"),
    table("tally", key: "counter at reservation", "counter:bytes at reservation:bytes"),
    table(
      "timer", key: "key",
      "key:bytes sequence sent_at resend_at reservation:bytes previous_sequence previous_sent_at previous_resend_at"),
    table("flow", key: "number", "number hash:bytes version forgotten_at record:bytes origin:text size"),
    table(
      "account", key: "id",
      "id:text first_name:text last_name:text created_at last_seen_at is_locked epoch is_unproved language:text"),
    table(
      "provider_record", key: "account provider",
      "account:text provider:text sealed:bytes created_at changed_at imported_hash:text change_due:text"),
    table(
      "identifier", key: "account position",
      """
      account:text position kind:text value:text display:text attributes:text verified_at member_of:text waits_until \
      skeleton:text rechecked_by:text recheck_state:bytes rechecked_at recheck_due recheck_fence
      """),
    table(
      "session", key: "token",
      """
      token:bytes id:text account:text created_at expires_at idle last_seen_at passed:text user_agent:text address:text \
      last_address:text is_remembered
      """),
    table("site_session", key: "hash token", "hash:text token:bytes"),
    table("group_member", key: "name account", "name:text account:text added_at"),
    table(
      "session_domain", key: "token",
      "token:bytes account:text session:text domain:text issued_under:bytes passed:text"),
    table(
      "trusted_device", key: "account id", "account:text id:text created_at last_seen_at user_agent:text"),
    table("factor_reset", key: "account provider", "account:text provider:text reset_at"),
    table("replaced_token", key: "token", "token:bytes account:text session:text replaced_at"),
    table("spent_code", key: "code", "code:bytes expires_at"),
    table("session_change", key: "number", "number at token:bytes account:text"),
    table("event", key: "number", "number id:text at event:bytes quota"),
    table("provider_value", key: "provider key", "provider:text key:bytes sealed:bytes expires_at"),
    table(
      "access_token", key: "id",
      """
      id:text hash:bytes master:text name:text account:text epoch member_of:text networks:text created_at expires_at is_superseded is_end_noted \
      last_used_at last_used_from:text used_from:text
      """),
    table(
      "invitation", key: "id",
      """
      id:text hash:bytes kind:text value:text display:text attributes:text member_of:text created_at expires_at \
      ended:text
      """),
    table(
      "app_grant", key: "id",
      """
      id:text app:text account:text session:text sid:text epoch is_offline scopes:text sign_in:text created_at used_at refresh:bytes \
      previous:bytes refreshed_at expires_at ended_at session_due notice_due notice_since notice_tries
      """),
    table(
      "app_connection", key: "account app", "account:text app:text scopes:text created_at used_at is_agreed"),
    table(
      "device_request", key: "device",
      """
      device:bytes user_code:bytes app:text scopes:text created_at expires_at address:text polled_at poll_interval outcome code:bytes
      """),
    table("lease", key: "name", "name:text holder:text fence held_until due_at"),
    table(
      "failed_attempt", key: "counter at reservation",
      "counter:bytes at reservation:bytes account:text identifier:text sealed:bytes"),
    table("audit_cursor", key: "sink", "sink:text number xact seen_at"),
    table("node", key: "id", "id:text generation:text seen_at keys:text"),
  ]

  /// Columns are numbers unless a type is given.
  private static func table(_ name: String, key: String, _ columns: String) -> Table {
    let columns = columns.split(separator: " ").map { column in
      let parts = column.split(separator: ":")
      let kind: Column.Kind = parts.count == 1 ? .integer : parts[1] == "text" ? .text : .bytes
      return Column(name: String(parts[0]), kind: kind)
    }
    return Table(name: name, columns: columns, key: key.split(separator: " ").map(String.init))
  }
}
