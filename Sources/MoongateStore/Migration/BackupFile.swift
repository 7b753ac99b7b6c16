import Crypto
import Foundation
import MoongateCore
import MoongateSDK

/// The header of a backup: one line of JSON before its rows.
package struct BackupHeader: Codable, Sendable, Equatable {
  /// The time of the state in the backup, in milliseconds since the epoch.
  package let createdAt: Int64
  /// The version of the schema.
  package let schema: Int
  /// The name of the master key that authenticates the file.
  package let key: String
  /// `KeyRing.fingerprint` of the store, in base64url.
  package let fingerprint: String
  /// The length of the SQLite database that follows the header, in bytes.
  package let bytes: Int
}

/// Why a backup was not made or not restored. Nothing was changed.
package enum BackupRefusal: Error, Sendable, Equatable, CustomStringConvertible {
  case exists(path: String)
  case unreadable(path: String, reason: String)
  case unwritable(path: String, reason: String)
  case open(path: String, mode: String)
  case foreign(path: String)
  case truncated(path: String, expected: Int, found: Int)
  case unknownKey(path: String, key: String)
  case altered(path: String)
  case newerSchema(path: String, found: Int, known: Int)
  case otherStore(path: String)
  /// The target belongs to keys that are not in the ring.
  case otherTarget(name: String)
  case notEmpty(name: String)

  package var description: String {
    switch self {
    case .exists(let path):
      "\(path) exists, and nothing was written. Name another file, or say --overwrite to replace it."
    case .unreadable(let path, let reason): "The backup \(path) cannot be read (\(reason)). Nothing was changed."
    case .unwritable(let path, let reason):
      "The backup \(path) cannot be written (\(reason)). An existing file is unchanged."
    case .open(let path, let mode):
      "The backup \(path) has mode \(mode): other users can access it, and it contains everything known about people. Run: chmod 600 \(path)"
    case .foreign(let path): "\(path) is not a backup made by `moongate store backup`. Nothing was changed."
    case .truncated(let path, let expected, let found):
      "The backup \(path) was cut or added to: it has \(found) bytes and should have \(expected). Nothing was changed; take another copy of it."
    case .unknownKey(let path, let key):
      """
      The backup \(path) was made with the master key \(key), which is not in the ring. Nothing was changed. Name the key file of that time as `key` \
      in gateway.lua: `moongate keys show` lists what a ring holds.
      """
    case .altered(let path):
      "The backup \(path) was damaged or changed since it was written. Nothing was changed in the store; take another copy."
    case .newerSchema(let path, let found, let known):
      "The backup \(path) was made by a newer Moongate (its schema is \(found), this program knows \(known)). Restore it with the newer program."
    case .otherStore(let path):
      """
      The backup \(path) is of a store whose counters use another oldest key than this ring's. Nothing was changed. Name the key file of that time as \
      `key` in gateway.lua.
      """
    case .otherTarget(let name):
      "\(name) was made with a master key that is not in the ring: it is another installation's, and was not replaced. Name an empty store."
    case .notEmpty(let name):
      "\(name) is not empty, and nothing was changed. Name an empty store as `store` in gateway.lua, or say --replace to delete what it holds."
    }
  }
}

/// A backup file: a line that identifies the format, a line with the header, a SQLite database, and an authentication
/// code over all of it.
///
/// Attack: someone with write access to the backups changes the phone number of an account and waits for the next
/// restore. Without the master key, a valid code cannot be computed, and no content of the file is used before it was
/// verified.
struct BackupFile {
  static let mark = "moongate backup 1\n"
  /// The maximum length of a header, in bytes.
  private static let maxHeaderLength = 4096
  private static let chunk = 1 << 20

  let path: String

  /// Writes a temporary file with mode 0600 and renames it when it is complete.
  ///
  /// Attack: created with the umask's mode, the file could be read by others while it is written.
  func write(_ header: BackupHeader, database: String, by keys: KeyRing, overwrites: Bool) throws {
    guard var code = keys.backupCode() else { throw BackupRefusal.unknownKey(path: path, key: header.key) }
    let draft = "\(path).\(Base64URL.encode(SystemRandom().bytes(6)))"
    let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { throw unwritable() }
    defer { unlink(draft) }
    let output = FileHandle(fileDescriptor: file, closeOnDealloc: false)
    defer { close(file) }
    do {
      let encoder = JSONEncoder()
      encoder.outputFormatting = .sortedKeys
      let head = Data(Self.mark.utf8) + (try encoder.encode(header)) + Data("\n".utf8)
      code.update(data: head)
      try output.write(contentsOf: head)
      let input = try FileHandle(forReadingFrom: URL(fileURLWithPath: database))
      defer { try? input.close() }
      while let chunk = try input.read(upToCount: Self.chunk), !chunk.isEmpty {
        code.update(data: chunk)
        try output.write(contentsOf: chunk)
      }
      try output.write(contentsOf: Data(code.finalize()))
    } catch let error as CocoaError {
      throw BackupRefusal.unwritable(path: path, reason: error.localizedDescription)
    }
    guard fchmod(file, 0o600) == 0, fsync(file) == 0 else { throw unwritable() }
    try place(draft, overwrites: overwrites)
  }

  private func place(_ draft: String, overwrites: Bool) throws(BackupRefusal) {
    if overwrites {
      guard rename(draft, path) == 0 else { throw unwritable() }
    } else {
      // Fails if a file or link was created there in the meantime.
      guard link(draft, path) == 0 else { throw errno == EEXIST ? .exists(path: path) : unwritable() }
    }
    DescriptorIO.syncFolder(of: path)
  }

  /// Verifies the whole file while copying its database, so that later steps use exactly what was verified.
  /// - Parameters:
  ///   - database: the path of the copy, created with mode 0600.
  ///   - known: the latest schema version that this program can read.
  /// - Throws: `BackupRefusal`.
  func extract(to database: String, by keys: KeyRing, upTo known: Int) throws -> BackupHeader {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { throw BackupRefusal.unreadable(path: path, reason: Self.reason()) }
    let input = FileHandle(fileDescriptor: file, closeOnDealloc: true)
    let size = try judge(file)
    let (header, head) = try header(of: input)
    guard header.schema <= known else {
      throw BackupRefusal.newerSchema(path: path, found: header.schema, known: known)
    }
    let expected = head.count + header.bytes + SHA256.byteCount
    guard header.bytes >= 0, size == expected else {
      throw BackupRefusal.truncated(path: path, expected: expected, found: size)
    }
    guard var code = keys.backupCode(by: header.key) else {
      throw BackupRefusal.unknownKey(path: path, key: header.key)
    }
    code.update(data: head)
    let copy = open(database, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard copy >= 0 else { throw BackupRefusal.unwritable(path: database, reason: Self.reason()) }
    let output = FileHandle(fileDescriptor: copy, closeOnDealloc: true)
    var left = header.bytes
    while left > 0 {
      guard let chunk = try input.read(upToCount: min(left, Self.chunk)), !chunk.isEmpty else {
        throw BackupRefusal.truncated(path: path, expected: expected, found: size - left)
      }
      code.update(data: chunk)
      do { try output.write(contentsOf: chunk) } catch {
        throw BackupRefusal.unwritable(path: database, reason: error.localizedDescription)
      }
      left -= chunk.count
    }
    try output.close()
    let written = try input.read(upToCount: SHA256.byteCount) ?? Data()
    guard constantTimeEquals(Array(code.finalize()), Array(written)) else { throw BackupRefusal.altered(path: path) }
    return header
  }

  /// - Returns: the length of the file.
  private func judge(_ file: Int32) throws(BackupRefusal) -> Int {
    var status = stat()
    guard fstat(file, &status) == 0 else { throw .unreadable(path: path, reason: Self.reason()) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .foreign(path: path) }
    guard status.st_mode & 0o077 == 0 else { throw .open(path: path, mode: String(status.st_mode & 0o777, radix: 8)) }
    return Int(status.st_size)
  }

  private func header(of input: FileHandle) throws -> (BackupHeader, head: Data) {
    let start = try input.read(upToCount: Self.maxHeaderLength) ?? Data()
    let mark = Data(Self.mark.utf8)
    guard start.starts(with: mark), let end = start[mark.count...].firstIndex(of: UInt8(ascii: "\n")),
      let header = try? JSONDecoder().decode(BackupHeader.self, from: start[mark.count..<end])
    else { throw BackupRefusal.foreign(path: path) }
    let head = start[...end]
    try input.seek(toOffset: UInt64(head.count))
    return (header, head)
  }

  private func unwritable() -> BackupRefusal { .unwritable(path: path, reason: Self.reason()) }

  private static func reason() -> String { String(cString: strerror(errno)) }
}
