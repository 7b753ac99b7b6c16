import Foundation
import MoongateCore
import MoongateSDK

extension StoreCopier {
  /// A restored backup.
  package struct Restored: Sendable {
    package let header: BackupHeader
    package let tables: [CopiedTable]
  }

  /// The tables of transient state. If they were restored, sessions that have ended since the backup would be live
  /// again, devices that were removed since would be trusted again, codes that were used since could be used again, and
  /// apps that were disconnected since would have their tokens again.
  private static let underWay: Set = [
    "session", "site_session", "session_domain", "replaced_token", "session_change", "flow", "trusted_device",
    "app_grant", "app_connection", "device_request",
  ]

  /// Writes a consistent state of the store to a file while gateways may be writing.
  /// - Parameter overwrites: whether to replace an existing file.
  /// - Throws: `BackupRefusal`, `CopyRefusal`, `StoreRefusal` or `StoreFault`. No new file was created then.
  package func backUp(
    to path: String, by keys: KeyRing, overwrites: Bool, at now: Timestamp, onCopied: (CopiedTable) -> Void
  ) throws {
    guard overwrites || !Self.isThere(path) else { throw BackupRefusal.exists(path: path) }
    guard let fingerprint = try fingerprint() else { throw CopyRefusal.nothingThere(name: name) }
    try Self.withFolder(beside: path) { folder throws in
      let database = "\(folder)/store.db"
      let target = try StoreCopier(.sqlite(path: database), schema: schema)
      try copy(to: target, CopyExtent(followsWrites: true), onCopied: onCopied)
      let size = (try FileManager.default.attributesOfItem(atPath: database)[.size] as? Int) ?? 0
      let header = BackupHeader(
        createdAt: now.milliseconds, schema: schema.version, key: keys.currentName,
        fingerprint: Base64URL.encode(fingerprint), bytes: size)
      try BackupFile(path: path).write(header, database: database, by: keys, overwrites: overwrites)
    }
  }

  /// Restores a backup into this store, in one transaction.
  ///
  /// Attack: someone whose session was ended, or who has read a code that was used, waits for a restore. Sessions,
  /// trusted devices, connected apps and flows are therefore only restored on request.
  /// - Parameters:
  ///   - replaces: whether to delete the store's current contents. Otherwise it must be empty.
  ///   - keepsSessions: whether to restore the backup's sessions, trusted devices, connected apps and flows.
  /// - Throws: `BackupRefusal`, `CopyRefusal`, `StoreRefusal` or `StoreFault`. The store is unchanged then.
  package func restore(
    from path: String, by keys: KeyRing, replaces: Bool, keepsSessions: Bool, onCopied: (CopiedTable) -> Void
  ) throws -> Restored {
    try Self.withFolder(beside: path) { folder throws in
      let database = "\(folder)/store.db"
      let header = try BackupFile(path: path).extract(to: database, by: keys, upTo: schema.version)
      guard Base64URL.decode(header.fingerprint) == keys.fingerprint else { throw BackupRefusal.otherStore(path: path) }
      try admit(replaces, keys)
      let source = try StoreCopier(.sqlite(path: database), schema: schema)
      _ = try source.migrate()
      let tables = Schema.moved.filter { keepsSessions || !Self.underWay.contains($0.name) }
      var copied: [CopiedTable] = []
      try source.copy(to: self, CopyExtent(tables: tables, replaces: replaces)) { table in
        copied.append(table)
        onCopied(table)
      }
      return Restored(header: header, tables: copied)
    }
  }

  /// Checks that the backup may replace this store, before anything is changed.
  private func admit(_ replaces: Bool, _ keys: KeyRing) throws {
    guard let owner = try fingerprint() else { return }
    guard replaces else { throw BackupRefusal.notEmpty(name: name) }
    guard keys.holder(of: owner) != nil else { throw BackupRefusal.otherTarget(name: name) }
  }

  private static func isThere(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  /// Creates a temporary folder that only its owner can access, for the database of a backup, and removes it
  /// afterwards.
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
