extension Schema {
  /// Step 5: which flows may be evicted, and by what the events of the trail are bounded.
  ///
  /// What an older gateway stores has no origin, so it is not evicted, and counts as activity. It takes no origin away
  /// either: a flow that it moves on stays one that may be evicted.
  static let fifth = Step(
    sqlite: """
      ALTER TABLE flow ADD COLUMN origin TEXT;                     -- whose it is, while nobody has proved anything in it
      ALTER TABLE flow ADD COLUMN size INTEGER NOT NULL DEFAULT 0; -- bytes of its record
      CREATE INDEX flow_unproved ON flow (origin, number, size) WHERE origin IS NOT NULL;
      ALTER TABLE event ADD COLUMN quota INTEGER NOT NULL DEFAULT 0;
      CREATE INDEX event_quota ON event (quota, number);
      """,
    postgres: """
      ALTER TABLE flow ADD COLUMN origin TEXT COLLATE "C";
      ALTER TABLE flow ADD COLUMN size BIGINT NOT NULL DEFAULT 0;
      CREATE INDEX flow_unproved ON flow (origin, number, size) WHERE origin IS NOT NULL;
      ALTER TABLE event ADD COLUMN quota BIGINT NOT NULL DEFAULT 0;
      CREATE INDEX event_quota ON event (quota, number);
      """)
}
