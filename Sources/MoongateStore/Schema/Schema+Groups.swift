extension Schema {
  /// Step 9: the members of groups.
  ///
  /// An older gateway that uses the store at the same time does not know groups: it keeps them unchanged, and deletes
  /// an account's memberships with the account.
  static let groups = Step(
    sqlite: """
      CREATE TABLE group_member (
        name TEXT NOT NULL,              -- of the group; accounts.lua says whether there is such a group
        account TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        added_at INTEGER NOT NULL,
        PRIMARY KEY (name, account)
      ) WITHOUT ROWID;
      CREATE INDEX group_member_account ON group_member (account, name);
      """,
    postgres: """
      CREATE TABLE group_member (
        name TEXT COLLATE "C" NOT NULL,
        account TEXT COLLATE "C" NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        added_at BIGINT NOT NULL,
        PRIMARY KEY (name, account)
      );
      CREATE INDEX group_member_account ON group_member (account, name);
      """)
}
