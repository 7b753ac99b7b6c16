import Foundation
import MoongateCore
import MoongateSDK

extension StoreCopier {
  /// What a restored backup was.
  package struct Restored: Sendable {
    package let header: BackupHeader
    package let tables: [CopiedTable]
  }

  /// Tables of what was under way when a backup was made: sessions that ended since would be alive again, and codes
  /// that were used since.
  private static let underWay: Set = ["session", "session_domain", "session_change", "flow"]

  /// Writes one state of the store into a file, whatever gateways write meanwhile.
  /// - Parameter overwrites: whether a file that is there is replaced.
  /// - Throws: `BackupRefusal`, `CopyRefusal`, `StoreRefusal` or `StoreFault`; then there is no new file.
  package func backUp(
    to path: String, by keys: KeyRing, overwrites: Bool, at now: Timestamp, told: (CopiedTable) -> Void
  ) throws {
    guard overwrites || !Self.isThere(path) else { throw BackupRefusal.exists(path: path) }
    guard let fingerprint = try fingerprint() else { throw CopyRefusal.nothingThere(name: name) }
    try Self.withFolder(beside: path) { folder throws in
      let database = "\(folder)/store.db"
      let target = try StoreCopier(.sqlite(path: database))
      try copy(to: target, CopyExtent(followsWrites: true), told: told)
      let size = (try FileManager.default.attributesOfItem(atPath: database)[.size] as? Int) ?? 0
      let header = BackupHeader(
        createdAt: now.milliseconds, schema: Schema.version, key: keys.currentName,
        fingerprint: Base64URL.encode(fingerprint), bytes: size)
      try BackupFile(path: path).write(header, database: database, by: keys, overwrites: overwrites)
    }
  }

  /// Puts a backup into this store, in one transaction.
  ///
  /// Attack: somebody whose session was ended, or who has read a code that was used, waits for a restore: unless they
  /// are asked for, sessions and flows stay out.
  /// - Parameters:
  ///   - replaces: whether what the store holds is deleted; else it must be empty.
  ///   - keepsSessions: whether sessions and flows of the backup live again.
  /// - Throws: `BackupRefusal`, `CopyRefusal`, `StoreRefusal` or `StoreFault`; then the store is as it was.
  package func restore(
    from path: String, by keys: KeyRing, replaces: Bool, keepsSessions: Bool, told: (CopiedTable) -> Void
  ) throws -> Restored {
    try Self.withFolder(beside: path) { folder throws in
      let database = "\(folder)/store.db"
      let header = try BackupFile(path: path).extract(to: database, by: keys)
      guard Base64URL.decode(header.fingerprint) == keys.fingerprint else { throw BackupRefusal.otherStore(path: path) }
      try admit(replaces, keys)
      let source = try StoreCopier(.sqlite(path: database))
      _ = try source.migrate()
      let tables = Schema.moved.filter { keepsSessions || !Self.underWay.contains($0.name) }
      var copied: [CopiedTable] = []
      try source.copy(to: self, CopyExtent(tables: tables, replaces: replaces)) { table in
        copied.append(table)
        told(table)
      }
      return Restored(header: header, tables: copied)
    }
  }

  /// Whether this store may take a backup's place, told before anything is made.
  private func admit(_ replaces: Bool, _ keys: KeyRing) throws {
    guard let owner = try fingerprint() else { return }
    guard replaces else { throw BackupRefusal.notEmpty(name: name) }
    guard keys.holder(of: owner) != nil else { throw BackupRefusal.otherTarget(name: name) }
  }

  private static func isThere(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  /// A folder that nobody else may enter, for the database of a backup; it is gone afterwards.
  private static func withFolder<Value>(beside path: String, _ body: (String) throws -> Value) throws -> Value {
    var template = Array("\(path).XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw BackupRefusal.unwritable(path: path, reason: String(cString: strerror(errno)))
    }
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    return try body(folder)
  }
}
