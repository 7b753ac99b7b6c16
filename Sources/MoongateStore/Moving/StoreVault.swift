import MoongateCore

/// A store as an operator moves it: looked at, brought up to date, and copied. Needs no key, blocks, and serves nobody.
package struct StoreVault: Sendable {
  private enum Kind: Sendable {
    case sqlite(SQLiteVault)
    case postgres(PostgresVault)
  }

  private let kind: Kind

  /// Opens nothing yet.
  /// - Throws: what is wrong with the location.
  package init(_ location: StoreLocation) throws(StoreRefusal) {
    switch location {
    case .sqlite(let path): kind = .sqlite(SQLiteVault(path: path))
    case .postgres(let url): kind = .postgres(try PostgresVault(url: url))
    }
  }

  private var vault: any Vault {
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
      findings.append("the schema is \(version), and this program's is \(Schema.version): `moongate store migrate` brings it up to date")
    }
    return StoreReport(version: version, counts: found.counts, findings: findings + found.findings)
  }

  /// Copies one state of it into an empty one, and reads back what it wrote.
  /// - Parameter told: called with each table once it was copied; nothing of it counts until all are.
  /// - Returns: whether this store was written to meanwhile: the copy lacks what came after its beginning.
  /// - Throws: `CopyRefusal`, `StoreRefusal` or `StoreFault`; then the target is as empty as it was.
  package func copy(to target: StoreVault, told: (CopiedTable) -> Void) throws -> Bool {
    guard let version = try vault.version(), version > 0 else { throw CopyRefusal.nothingThere(name: name) }
    guard version == Schema.version else { throw CopyRefusal.olderSchema(name: name, found: version, known: Schema.version) }
    switch try target.version() {
    case nil, 0: _ = try target.migrate()
    case Schema.version: break
    case let found?: throw CopyRefusal.olderSchema(name: target.name, found: found, known: Schema.version)
    }
    let before = try vault.read(Watermark())
    try withoutActuallyEscaping(told) { told in
      switch target.kind {
      case .sqlite(let target): _ = try vault.read(CopySource(target: target, told: told))
      case .postgres(let target): _ = try vault.read(CopySource(target: target, told: told))
      }
    }
    return try vault.read(Watermark()) != before
  }
}
