extension Schema {
  /// Step 6: accounts that never proved an identifier, to be found by their age; and since when there is a record of a
  /// provider.
  ///
  /// By their age and not by their last use, because that changes with every sign-in: PostgreSQL can then keep the new
  /// row beside the old one (HOT).
  ///
  /// A gateway that does not know this step makes accounts that are marked as nothing, which are kept, and leaves the
  /// mark on one that proves something: who looks for marked ones looks whether that is still so.
  static let sixth = Step(
    sqlite: """
      ALTER TABLE account ADD COLUMN is_unproved INTEGER;
      UPDATE account SET is_unproved = 1
        WHERE NOT EXISTS (SELECT 1 FROM identifier WHERE identifier.account = account.id AND verified_at IS NOT NULL);
      CREATE INDEX account_unproved ON account (created_at) WHERE is_unproved = 1;
      ALTER TABLE provider_record ADD COLUMN created_at INTEGER;
      ALTER TABLE provider_record ADD COLUMN changed_at INTEGER;
      """,
    postgres: """
      ALTER TABLE account ADD COLUMN is_unproved BIGINT;
      UPDATE account SET is_unproved = 1
        WHERE NOT EXISTS (SELECT 1 FROM identifier WHERE identifier.account = account.id AND verified_at IS NOT NULL);
      CREATE INDEX account_unproved ON account (created_at) WHERE is_unproved = 1;
      ALTER TABLE provider_record ADD COLUMN created_at BIGINT;
      ALTER TABLE provider_record ADD COLUMN changed_at BIGINT;
      """)
}
