extension Schema {
  /// Step 2: the gateways that serve from this store, with their policy generations.
  static let nodes = Step(
    sqlite: """
      CREATE TABLE node (
        id TEXT NOT NULL PRIMARY KEY,
        generation TEXT NOT NULL,
        seen_at INTEGER NOT NULL
      ) WITHOUT ROWID;
      """,
    postgres: """
      CREATE TABLE node (
        id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
        generation TEXT COLLATE "C" NOT NULL,
        seen_at BIGINT NOT NULL
      );
      """)
}
