import MoongateCore

/// Reads the fingerprint of the master key that the store was created with.
private struct Owner: SnapshotWork {
  func run(_ rows: some SQLTransaction) throws -> [UInt8]? { try MetaRows.owner(rows)?.fingerprint }
}

/// A store for an operator's commands: checked, migrated and copied. It needs no key, blocks the calling thread, and
/// serves no requests.
package struct StoreCopier: Sendable {
  private enum Kind: Sendable {
    case sqlite(SQLiteSnapshot)
    case postgres(PostgresSnapshot)
  }

  private let kind: Kind
  let schema: Schema

  /// Does not open the store yet.
  /// - Throws: the problem with the location.
  package init(_ location: StoreLocation) throws(StoreRefusal) { try self.init(location, schema: .current) }

  init(_ location: StoreLocation, schema: Schema) throws(StoreRefusal) {
    self.schema = schema
    switch location {
    case .sqlite(let path): kind = .sqlite(SQLiteSnapshot(path: path, schema: schema))
    case .postgres(let url): kind = .postgres(try PostgresSnapshot(url: url, schema: schema))
    }
  }

  private var snapshot: any StoreSnapshot {
    switch kind {
    case .sqlite(let snapshot): snapshot
    case .postgres(let snapshot): snapshot
    }
  }

  /// The display name, without a password.
  package var name: String { snapshot.name }
  /// The schema version of this program.
  package static var knownVersion: Int { Schema.current.version }

  /// - Returns: the schema version; 0 if the store is empty; nil if it does not exist.
  /// - Throws: `StoreRefusal` if this program cannot read the store.
  package func version() throws(StoreRefusal) -> Int? { try snapshot.version() }

  /// Creates the store if it does not exist, and migrates its schema. Running gateways that know an older schema can
  /// continue to use it.
  /// - Returns: the previous schema version.
  package func migrate() throws(StoreRefusal) -> Int { try snapshot.migrate() }

  /// Checks a consistent state of the store: its files, its schema, and the invariants of every store. Of a store with
  /// an older schema, it checks only the files.
  /// - Throws: `StoreRefusal`, `StoreFault`, or `CopyRefusal.nothingThere`.
  package func check() throws -> StoreReport {
    guard let version = try snapshot.version(), version > 0 else { throw CopyRefusal.nothingThere(name: name) }
    let findings = try snapshot.damage().map { "damage: \($0)" }
    guard version == schema.version else {
      let outdated =
        "the schema is \(version), and this program's is \(schema.version): `moongate store migrate` brings it up to date"
      return StoreReport(version: version, counts: [], findings: findings + [outdated])
    }
    let found = try snapshot.read(StoreCheck())
    return StoreReport(version: version, counts: found.counts, findings: findings + found.findings)
  }

  /// The fingerprint of the master key that the store was created with (`KeyRing.fingerprint`); nil if the store does
  /// not exist or no gateway has used it yet.
  /// - Throws: `StoreRefusal` or `StoreFault`.
  package func fingerprint() throws -> [UInt8]? {
    guard let version = try snapshot.version(), version > 0 else { return nil }
    return try snapshot.read(Owner())
  }

  /// Copies a consistent state of this store into an empty one and verifies the copy by reading it back. Finally checks
  /// that this store has not changed in the meantime, so that no write is silently lost.
  /// - Parameter onCopied: called for each table after it was copied. Nothing is committed until all tables are copied.
  /// - Throws: `CopyRefusal`, `StoreRefusal` or `StoreFault`. The target is still empty then.
  package func copy(to target: StoreCopier, onCopied: (CopiedTable) -> Void) throws {
    try copy(to: target, CopyExtent(), onCopied: onCopied)
  }

  /// - Parameter extent: what to copy, and whether the source may change meanwhile.
  func copy(to target: StoreCopier, _ extent: CopyExtent, onCopied: (CopiedTable) -> Void) throws {
    guard let version = try snapshot.version(), version > 0 else { throw CopyRefusal.nothingThere(name: name) }
    guard version == schema.version else {
      throw CopyRefusal.olderSchema(name: name, found: version, known: schema.version)
    }
    switch try target.version() {
    case nil, 0: _ = try target.migrate()
    case schema.version: break
    case let found?: throw CopyRefusal.olderSchema(name: target.name, found: found, known: schema.version)
    }
    try withoutActuallyEscaping(onCopied) { onCopied in
      switch (kind, target.kind) {
      case (.sqlite(let source), .sqlite(let target)): try Self.copy(source, to: target, extent, onCopied)
      case (.sqlite(let source), .postgres(let target)): try Self.copy(source, to: target, extent, onCopied)
      case (.postgres(let source), .sqlite(let target)): try Self.copy(source, to: target, extent, onCopied)
      case (.postgres(let source), .postgres(let target)): try Self.copy(source, to: target, extent, onCopied)
      }
    }
  }

  private static func copy(
    _ source: some StoreSnapshot, to target: some StoreSnapshot, _ extent: CopyExtent,
    _ onCopied: @escaping (CopiedTable) -> Void
  ) throws {
    if !extent.followsWrites { try source.read(NoServingNodes(name: source.name)) }
    try source.read(CopySource(source: source, target: target, extent: extent, onCopied: onCopied))
  }
}
