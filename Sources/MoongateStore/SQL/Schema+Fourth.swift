extension Schema {
  /// Step 4: how often an account has changed in a way after which older proofs are not believed. NULL, as an older
  /// program leaves it, is 0.
  static let fourth = Step(
    sqlite: "ALTER TABLE account ADD COLUMN epoch INTEGER;", postgres: "ALTER TABLE account ADD COLUMN epoch BIGINT;")
}
