extension Schema {
  /// Step 6: accounts without any verified identifier, indexed by age; and the times of providers' records.
  ///
  /// Indexed by age and not by last use, because the last use changes with every sign-in: PostgreSQL can then keep the
  /// new row version on the same page (HOT).
  ///
  /// A gateway that does not know this step creates accounts without the mark, which are kept, and leaves the mark on
  /// an account that verifies an identifier. Before a marked account is deleted, the mark must therefore be checked.
  static let unverifiedAccounts = Step(
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
