// Import Glibc explicitly: the compiler attributes `struct stat` to the first of these modules that it loads.
import CDispatch
import CoreFoundation
import Foundation
import Glibc
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// The master keys of this installation, read from the place in gateway.lua; created at the first start.
struct MasterKey {
  let masters: MasterKeys
  let keys: KeyRing
  /// The newly created key file; nil if it already existed.
  let madeFile: String?

  private static let length = 32
  /// The maximum size of a key file. A longer file is not a key file.
  private static let maxBytes = 131_072

  /// - Throws: an error that says what is wrong with the key and what to do. It contains no key material.
  init(_ location: KeyLocation) throws(StartProblem) {
    switch location {
    case .value(let secret):
      masters = try Self.masters(Array(secret.reveal().utf8), from: "The key in the environment")
      madeFile = nil
    case .credential(let path):
      guard let bytes = try Self.read(path) else {
        throw StartProblem("The credential \(path) with the master key is missing. Restart the gateway's unit.")
      }
      masters = try Self.masters(bytes, from: "The credential \(path)")
      madeFile = nil
    case .file(let path):
      if let bytes = try Self.read(path) {
        masters = try Self.masters(bytes, from: "The key file \(path)")
        madeFile = nil
      } else {
        masters = try Self.masters(try Self.make(path, Self.fresh()), from: "The key file \(path)")
        madeFile = path
      }
    }
    keys = KeyRing(masters)
  }

  /// A new random key.
  static func fresh() -> [UInt8] { SystemRandom().bytes(length) }

  /// Removes a key file that was created for a store that turned out to belong to another key.
  func undo() {
    if let madeFile { unlink(madeFile) }
  }

  /// - Parameter what: the source of the bytes, for messages.
  static func masters(_ bytes: [UInt8], from what: String) throws(StartProblem) -> MasterKeys {
    do {
      return try MasterKeys(reading: bytes)
    } catch .malformed(let line, let problem) {
      throw StartProblem(
        "\(what), line \(line): \(problem). The file is not replaced. Restore it from your copy.")
    } catch .tooLong {
      throw StartProblem("\(what) is too long for a key file.")
    } catch {
      throw StartProblem(
        "\(what) is too short: it must contain at least \(length) bytes, for example the output of `openssl rand -hex 32`."
      )
    }
  }

  /// - Returns: the contents, or nil if the file does not exist.
  static func read(_ path: String) throws(StartProblem) -> [UInt8]? {
    // Open without blocking, so that a named pipe in its place is refused at once.
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else {
      if errno == ENOENT { return nil }
      throw StartProblem("The key file \(path) cannot be read: \(reason()).")
    }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw StartProblem("The key file \(path) cannot be read: \(reason()).") }
    guard status.st_mode & S_IFMT == S_IFREG else { throw StartProblem("The key file \(path) is not a regular file.") }
    // Check the open file: the path could be replaced between a check and the read. systemd grants one user access to a
    // credential through an ACL; the group bits are then the mask of the ACL.
    guard status.st_mode & 0o077 == 0 || status.st_mode & 0o037 == 0 && !FilePermissions.isShared(status, file) else {
      let mode = String(status.st_mode & 0o777, radix: 8)
      throw StartProblem(
        "The key file \(path) has mode \(mode): users other than its owner can access it. Run: chmod 600 \(path)")
    }
    guard status.st_uid == geteuid() || status.st_uid == 0 else {
      let owner = getpwuid(status.st_uid).map { String(cString: $0.pointee.pw_name) } ?? "#\(status.st_uid)"
      throw StartProblem(
        "The key file \(path) belongs to another user, \(owner). If that is the gateway's user, run the command as "
          + "that user: sudo -u \(owner) moongate …")
    }
    guard status.st_size <= maxBytes else { throw StartProblem("The file \(path) is too long for a key file.") }
    guard let bytes = DescriptorIO.readAll(of: file, most: maxBytes) else {
      throw StartProblem("The key file \(path) cannot be read: \(reason()).")
    }
    return bytes
  }

  /// Creates a file of secret bytes with mode 600, and its folder.
  ///
  /// The file is written under a temporary name, synced, and linked to its path, which fails if another process was
  /// faster. The file is therefore always complete.
  /// - Returns: the bytes of the file, which may come from the other process.
  static func make(_ path: String, _ bytes: [UInt8]) throws(StartProblem) -> [UInt8] {
    let folder = path.parentFolder
    do {
      try FileManager.default.createDirectory(
        atPath: folder.isEmpty ? "." : folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700]
      )
    } catch {
      throw StartProblem("The folder \(folder) for the key file cannot be created: \(FileProblem(error))")
    }
    let draft = "\(path).\(Base64URL.encode(SystemRandom().bytes(6)))"
    let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { throw StartProblem("The key file \(path) cannot be created: \(reason()).") }
    defer { unlink(draft) }
    let written = DescriptorIO.writeAll(bytes, to: file) && fsync(file) == 0
    let problem = reason()
    close(file)
    guard written else { throw StartProblem("The key file \(path) cannot be written: \(problem).") }
    guard link(draft, path) == 0 else {
      if errno == EEXIST, let theirs = try read(path) { return theirs }
      throw StartProblem("The key file \(path) cannot be created: \(reason()).")
    }
    // Sync the folder too, so that the name survives a power failure: without its key, the store is unreadable.
    DescriptorIO.syncFolder(of: path)
    return bytes
  }

  static func reason() -> String { String(cString: strerror(errno)) }
}
