extension Schema {
  /// Step 8: the language of messages to an account.
  ///
  /// An older gateway beside does not know it: it sends in English, and keeps what is there.
  static let eighth = Step(
    sqlite: """
      ALTER TABLE account ADD COLUMN language TEXT;
      """,
    postgres: """
      ALTER TABLE account ADD COLUMN language TEXT COLLATE "C";
      """)
}
