// `struct stat` is the C library's, but counts as a member of whichever of these modules the compiler has read first.
import CDispatch
import CoreFoundation
import Foundation
import Glibc
import MoongateCore
import MoongatePolicy
import MoongateSDK

/// The installation's master keys: read from where gateway.lua says, one made where there is none yet.
struct MasterKey {
  let masters: MasterKeys
  let keys: KeyRing
  /// The file that was made just now; nil where the key was there before.
  let madeFile: String?

  private static let length = 32
  /// A file longer than this holds something else than a ring of keys.
  private static let mostBytes = 131_072

  /// - Throws: a sentence that says what is wrong with the key and what to do; never a byte of it.
  init(_ location: KeyLocation) throws(StartProblem) {
    switch location {
    case .value(let secret):
      masters = try Self.masters(Array(secret.reveal().utf8), from: "The key in the environment")
      madeFile = nil
    case .credential(let path):
      guard let bytes = try Self.read(path) else {
        throw StartProblem("The credential \(path) with the master key is gone. Restart the gateway's unit.")
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

  /// A key that nobody has.
  static func fresh() -> [UInt8] { SystemRandom().bytes(length) }

  /// Takes back a key that was made for a store that turned out to belong to another.
  func undo() {
    if let madeFile { unlink(madeFile) }
  }

  /// - Parameter what: the file or the variable, in words.
  static func masters(_ bytes: [UInt8], from what: String) throws(StartProblem) -> MasterKeys {
    do {
      return try MasterKeys(reading: bytes)
    } catch .malformed(let line, let problem) {
      throw StartProblem(
        "\(what), line \(line): \(problem). Nothing is made in its place; take the file from where you keep its copy.")
    } catch .tooLong {
      throw StartProblem("\(what) is too long to be a key.")
    } catch {
      throw StartProblem(
        "\(what) is too short: it must hold at least \(length) bytes, such as `openssl rand -hex 32` prints.")
    }
  }

  /// - Returns: nil where there is no file.
  static func read(_ path: String) throws(StartProblem) -> [UInt8]? {
    // Non-blocking, so that a pipe in its place is refused and not waited for.
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else {
      if errno == ENOENT { return nil }
      throw StartProblem("The key file \(path) cannot be read: \(reason()).")
    }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw StartProblem("The key file \(path) cannot be read: \(reason()).") }
    guard status.st_mode & S_IFMT == S_IFREG else { throw StartProblem("The key file \(path) is no regular file.") }
    // Judged on the open file: between a look at the path and the reading it could be exchanged.
    // systemd lets one user read a credential by an access list: the group's bits then say what the list allows at
    // most.
    guard status.st_mode & 0o077 == 0 || status.st_mode & 0o037 == 0 && !FilePermissions.isShared(status, file) else {
      let mode = String(status.st_mode & 0o777, radix: 8)
      throw StartProblem(
        "The key file \(path) has mode \(mode): others than its owner may use it. Run: chmod 600 \(path)")
    }
    guard status.st_uid == geteuid() || status.st_uid == 0 else {
      throw StartProblem("The key file \(path) belongs to another user (uid \(status.st_uid)).")
    }
    guard status.st_size <= mostBytes else { throw StartProblem("The file \(path) is too long to be a key file.") }
    var bytes = [UInt8](repeating: 0, count: mostBytes)
    var count = 0
    while count < mostBytes {
      let got = bytes.withUnsafeMutableBytes {
        Foundation.read(file, $0.baseAddress?.advanced(by: count), mostBytes - count)
      }
      if got < 0, errno == EINTR { continue }
      guard got >= 0 else { throw StartProblem("The key file \(path) cannot be read: \(reason()).") }
      if got == 0 { break }
      count += got
    }
    return Array(bytes[..<count])
  }

  /// Makes a file of secret bytes for its owner only, with its folder.
  ///
  /// Makes the file whole or not at all: written beside its place, synced, and linked into it, which fails where
  /// another process was first.
  /// - Returns: the bytes that lie there now.
  static func make(_ path: String, _ bytes: [UInt8]) throws(StartProblem) -> [UInt8] {
    let folder = (path as NSString).deletingLastPathComponent
    do {
      try FileManager.default.createDirectory(
        atPath: folder.isEmpty ? "." : folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700]
      )
    } catch {
      throw StartProblem("The folder \(folder) for the key file cannot be made: \(error.localizedDescription)")
    }
    let draft = "\(path).\(Base64URL.encode(SystemRandom().bytes(6)))"
    let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { throw StartProblem("The key file \(path) cannot be made: \(reason()).") }
    defer { unlink(draft) }
    let written = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) } == bytes.count && fsync(file) == 0
    let problem = reason()
    close(file)
    guard written else { throw StartProblem("The key file \(path) cannot be written: \(problem).") }
    guard link(draft, path) == 0 else {
      if errno == EEXIST, let theirs = try read(path) { return theirs }
      throw StartProblem("The key file \(path) cannot be made: \(reason()).")
    }
    // The name, too, must outlive a power cut: without its key the store is worthless.
    let parent = open(folder.isEmpty ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if parent >= 0 {
      fsync(parent)
      close(parent)
    }
    return bytes
  }

  static func reason() -> String { String(cString: strerror(errno)) }
}
