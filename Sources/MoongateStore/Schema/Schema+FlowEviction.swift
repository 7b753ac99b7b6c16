extension Schema {
  /// Step 5: which flows may be evicted, and the quotas of audit events.
  ///
  /// Flows that an older gateway stores have no origin, so they are not evicted; its events count as activity. It does
  /// not remove an origin either: a flow that it continues may still be evicted.
  static let flowEviction = Step(
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
