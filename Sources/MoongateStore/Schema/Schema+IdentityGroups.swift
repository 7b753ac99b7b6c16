extension Schema {
  /// Step 15: the groups of federated identities at their sites.
  ///
  /// An older gateway that uses the store at the same time does not know them, and keeps them unchanged.
  static let identityGroups = Step(
    sqlite: "ALTER TABLE identifier ADD COLUMN member_of TEXT; -- JSON; NULL: none",
    postgres: "ALTER TABLE identifier ADD COLUMN member_of TEXT COLLATE \"C\";")
}
