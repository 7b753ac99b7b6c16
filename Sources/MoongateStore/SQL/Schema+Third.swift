extension Schema {
  /// Step 3: which master keys each of those gateways knows.
  static let third = Step(
    sqlite: "ALTER TABLE node ADD COLUMN keys TEXT;", postgres: "ALTER TABLE node ADD COLUMN keys TEXT COLLATE \"C\";")
}
