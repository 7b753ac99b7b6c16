extension Schema {
  /// Step 8: the language of messages to an account.
  ///
  /// An older gateway that uses the store at the same time does not know it: it sends in English, and keeps the column
  /// unchanged.
  static let accountLanguage = Step(
    sqlite: """
      ALTER TABLE account ADD COLUMN language TEXT;
      """,
    postgres: """
      ALTER TABLE account ADD COLUMN language TEXT COLLATE "C";
      """)
}
