extension Schema {
  /// Step 3: the master keys that each gateway knows.
  static let nodeKeys = Step(
    sqlite: "ALTER TABLE node ADD COLUMN keys TEXT;", postgres: "ALTER TABLE node ADD COLUMN keys TEXT COLLATE \"C\";")
}
