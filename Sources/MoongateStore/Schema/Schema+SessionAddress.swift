extension Schema {
  /// Step 13: the client addresses from which a session began and was last used, for its owner and for operators.
  ///
  /// An older gateway that uses the store at the same time writes sessions without addresses, and leaves the last
  /// address as it is.
  static let sessionAddress = Step(
    sqlite: """
      ALTER TABLE session ADD COLUMN address TEXT;
      ALTER TABLE session ADD COLUMN last_address TEXT;
      """,
    postgres: """
      ALTER TABLE session ADD COLUMN address TEXT COLLATE "C";
      ALTER TABLE session ADD COLUMN last_address TEXT COLLATE "C";
      """)
}
