extension Schema {
  /// Step 4: the number of an account's changes that invalidate earlier proofs. NULL, as an older version leaves it,
  /// means 0.
  static let accountEpoch = Step(
    sqlite: "ALTER TABLE account ADD COLUMN epoch INTEGER;", postgres: "ALTER TABLE account ADD COLUMN epoch BIGINT;")
}
