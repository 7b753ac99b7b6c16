import MoongateCore

/// Whose store it is.
private struct Owner: SnapshotWork {
  func run(_ rows: some SQLTransaction) throws -> [UInt8]? { try MetaRows.owner(rows)?.fingerprint }
}

/// A store as an operator moves it: looked at, brought up to date, and copied. Needs no key, blocks, and serves nobody.
package struct StoreCopier: Sendable {
  private enum Kind: Sendable {
    case sqlite(SQLiteSnapshot)
    case postgres(PostgresSnapshot)
  }

  private let kind: Kind

  /// Opens nothing yet.
  /// - Throws: what is wrong with the location.
  package init(_ location: StoreLocation) throws(StoreRefusal) {
    switch location {
    case .sqlite(let path): kind = .sqlite(SQLiteSnapshot(path: path))
    case .postgres(let url): kind = .postgres(try PostgresSnapshot(url: url))
    }
  }

  private var vault: any StoreSnapshot {
    switch kind {
    case .sqlite(let vault): vault
    case .postgres(let vault): vault
    }
  }

  /// What people are shown: without a password.
  package var name: String { vault.name }
  /// What this program's schema is.
  package static var knownVersion: Int { Schema.version }

  /// - Returns: the version of its schema; 0 where it is empty; nil where it is not there.
  /// - Throws: `StoreRefusal` where it is no store that this program can look at.
  package func version() throws(StoreRefusal) -> Int? { try vault.version() }

  /// Makes it where it is not there, and brings its schema up to date. Gateways of an older program go on serving.
  /// - Returns: the version that it had.
  package func migrate() throws(StoreRefusal) -> Int { try vault.migrate() }

  /// Looks at all of it, in one state: its files, its schema, and the rules that hold in every store.
  /// - Throws: `StoreRefusal`, `StoreFault`, or `CopyRefusal.nothingThere`.
  package func check() throws -> StoreReport {
    guard let version = try vault.version(), version > 0 else { throw CopyRefusal.nothingThere(name: name) }
    var findings = try vault.damage().map { "damage: \($0)" }
    let found = try vault.read(StoreCheck(version: version))
    if version < Schema.version {
      findings.append(
        "the schema is \(version), and this program's is \(Schema.version): `moongate store migrate` brings it up to date"
      )
    }
    return StoreReport(version: version, counts: found.counts, findings: findings + found.findings)
  }

  /// The mark of the key that it was made with (`KeyRing.fingerprint`); nil where there is no store, or nobody's yet.
  /// - Throws: `StoreRefusal` or `StoreFault`.
  package func fingerprint() throws -> [UInt8]? {
    guard let version = try vault.version(), version > 0 else { return nil }
    return try vault.read(Owner())
  }

  /// Copies one state of it into an empty one, and reads back what it wrote. At the end it looks whether all of this
  /// store is as it was: nothing that was written meanwhile is lost silently.
  /// - Parameter told: called with each table once it was copied; nothing of it counts until all are.
  /// - Throws: `CopyRefusal`, `StoreRefusal` or `StoreFault`; then the target is as empty as it was.
  package func copy(to target: StoreCopier, told: (CopiedTable) -> Void) throws {
    try copy(to: target, CopyExtent(), told: told)
  }

  /// - Parameter extent: what is copied, and whether the source may change meanwhile.
  func copy(to target: StoreCopier, _ extent: CopyExtent, told: (CopiedTable) -> Void) throws {
    guard let version = try vault.version(), version > 0 else { throw CopyRefusal.nothingThere(name: name) }
    guard version == Schema.version else {
      throw CopyRefusal.olderSchema(name: name, found: version, known: Schema.version)
    }
    switch try target.version() {
    case nil, 0: _ = try target.migrate()
    case Schema.version: break
    case let found?: throw CopyRefusal.olderSchema(name: target.name, found: found, known: Schema.version)
    }
    try withoutActuallyEscaping(told) { told in
      switch (kind, target.kind) {
      case (.sqlite(let source), .sqlite(let target)): try Self.copy(source, to: target, extent, told)
      case (.sqlite(let source), .postgres(let target)): try Self.copy(source, to: target, extent, told)
      case (.postgres(let source), .sqlite(let target)): try Self.copy(source, to: target, extent, told)
      case (.postgres(let source), .postgres(let target)): try Self.copy(source, to: target, extent, told)
      }
    }
  }

  private static func copy(
    _ source: some StoreSnapshot, to target: some StoreSnapshot, _ extent: CopyExtent,
    _ told: @escaping (CopiedTable) -> Void
  ) throws {
    if !extent.followsWrites { try source.read(NobodyServes(name: source.name)) }
    try source.read(CopySource(source: source, target: target, extent: extent, told: told))
  }
}
