extension Schema {
  /// The imported hash that a provider's record holds (`HashWork.description`), so that the gateway knows the kinds
  /// without opening the records.
  ///
  /// An older gateway that uses the store at the same time keeps the column unchanged. A record that it replaced counts
  /// as an imported one until the next sign-in, which costs time and reveals nothing.
  static let importedHashes = Step(
    sqlite: """
      ALTER TABLE provider_record ADD COLUMN imported_hash TEXT;
      CREATE INDEX provider_record_imported ON provider_record (provider, imported_hash) WHERE imported_hash IS NOT NULL;
      """,
    postgres: """
      ALTER TABLE provider_record ADD COLUMN imported_hash TEXT COLLATE "C";
      CREATE INDEX provider_record_imported ON provider_record (provider, imported_hash) WHERE imported_hash IS NOT NULL;
      """)
}
