import Crypto
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif
import MoongateCore
import MoongateSDK

/// A snapshot of a folder's Lua files.
struct ConfigurationFiles: Sendable {
  /// A Lua file.
  struct File: Sendable {
    /// Such as `policies/phone_otp.lua`.
    let name: String
    let bytes: [UInt8]

    /// The name without folder and ending, such as `phone_otp` for `policies/phone_otp.lua`.
    var title: String { String(name.split(separator: "/").last ?? "").replacing(/\.lua$/, with: "") }

    init(name: String, bytes: [UInt8]) {
      self.name = name
      self.bytes = bytes
    }

    /// A file that a provider ships.
    init(_ source: PolicySource) { self.init(name: source.file, bytes: Array(source.text.utf8)) }
  }

  /// The maximum size of a file. Larger files are there by mistake.
  static let largestFile = 1 << 20
  static let maxFiles = 500
  /// The Lua files that are read from the folder itself.
  static let rootFiles = ["gateway.lua", "routes.lua", "accounts.lua", "apps.lua", "guarantees.lua"]
  static let folders = ["policies", "flows", "tests", SharedFile.folder]
  /// The folder with replacements for parts of the hosted pages.
  static let pageFolder = "pages"

  /// The programs that gateway.lua names, with digests of their files. Empty until gateway.lua has been read.
  var programs: [(name: String, digest: String)] = []
  /// The other files that gateway.lua and routes.lua name, except those with secrets. Empty until these have been read.
  var named: [(name: String, bytes: [UInt8])] = []
  /// Sorted by name. Files that could not be read are in `problems`.
  private(set) var files: [File] = []
  /// The files of `pages/`, sorted by name.
  private(set) var pages: [PageFile] = []
  /// The templates in folders below `pages/`, which routes name by `error_pages`, sorted by name.
  private(set) var errorPages: [PageFile] = []
  private(set) var problems: [ConfigurationProblem] = []
  /// Whether the folder exists and can be listed.
  private(set) var isFolderThere = true

  /// Reads the Lua files of the folder, the `.lua` files of `policies/`, `flows/`, `tests/` and `shared/`, all of
  /// `pages/`, and the templates in its folders.
  /// Skips hidden files.
  init(folder: String) {
    if let message = Self.problem(ofFolder: folder) {
      isFolderThere = false
      problems = [
        ConfigurationProblem(location: SourceLocation(file: folder, line: 0), path: "", message: message)
      ]
      return
    }
    let names = Self.names(in: folder) { problems.append($0) }
    if names.count > Self.maxFiles {
      problems.append(
        ConfigurationProblem(
          location: SourceLocation(file: folder, line: 0), path: "", message: "more than \(Self.maxFiles) Lua files"))
    }
    for name in names.prefix(Self.maxFiles) {
      switch Self.read(folder + "/" + name) {
      case .success(let bytes): files.append(File(name: name, bytes: bytes))
      case .failure(let failure):
        problems.append(
          ConfigurationProblem(location: SourceLocation(file: name, line: 0), path: "", message: failure.message))
      }
    }
    pages = readPages(Self.pageNames(in: folder, problem: { problems.append($0) }), in: folder)
    errorPages = readPages(Self.errorPageNames(in: folder), in: folder)
  }

  private mutating func readPages(_ names: [String], in folder: String) -> [PageFile] {
    names.prefix(Self.maxFiles).compactMap { name in
      switch Self.read(folder + "/" + name) {
      case .success(let bytes): return PageFile(name: String(name.dropFirst(Self.pageFolder.count + 1)), bytes: bytes)
      case .failure(let failure):
        problems.append(
          ConfigurationProblem(location: SourceLocation(file: name, line: 0), path: "", message: failure.message))
        return nil
      }
    }
  }

  /// The id of the generation: SHA-256 over the names and contents of all files, each preceded by its length.
  var digest: String { digest { $0.bytes } }

  /// A digest over the names and the transformed contents of all files.
  func digest(_ content: (File) -> [UInt8]) -> String {
    var hash = SHA256()
    let programs = programs.map { ("exec \($0.name)", Array($0.digest.utf8)) }
    let others = named.map { ("file \($0.name)", $0.bytes) }
    let pages = (pages + errorPages).map { ($0.path, $0.bytes) }
    for (name, bytes) in files.map({ ($0.name, content($0)) }) + pages + programs + others {
      for part in [Array(name.utf8), bytes] {
        withUnsafeBytes(of: UInt64(part.count).bigEndian) { hash.update(bufferPointer: $0) }
        hash.update(data: part)
      }
    }
    return Hex.encode(hash.finalize())
  }

  func file(_ name: String) -> File? { files.first { $0.name == name } }

  /// The files of `shared/`. A file whose name no `include` can name, and one that is too large, is a problem.
  func shared(_ problems: Problems) -> [SharedFile] {
    files(in: SharedFile.folder).compactMap { file in
      let location = SourceLocation(file: file.name, line: 0)
      guard file.title.wholeMatch(of: /[a-z][a-z0-9_]{0,31}/) != nil else {
        problems.add(
          location, "",
          "the name of a shared file has 1 to 32 lower-case letters, digits and _, and begins with a letter")
        return nil
      }
      guard file.bytes.count <= SharedFile.largest else {
        problems.add(location, "", "a shared file has at most 64 KiB; this one has \(file.bytes.count) bytes")
        return nil
      }
      return SharedFile(name: file.title, file: file.name, bytes: file.bytes)
    }
  }

  func files(in folder: String) -> [File] { files.filter { $0.name.hasPrefix(folder + "/") } }

  /// The names of the Lua files, sorted.
  static func names(in folder: String, problem: (ConfigurationProblem) -> Void = { _ in }) -> [String] {
    // Attack: accounts.lua as a folder, which a container creates if the file of a mount is missing. It must not count
    // as absent.
    var names = list(folder).filter { $0.hasSuffix(".lua") && (rootFiles.contains($0) || !isFolder(folder + "/" + $0)) }
    for inner in folders {
      let path = folder + "/" + inner
      if let failure = unlistable(path, named: inner) { problem(failure) }
      names += list(path).filter { $0.hasSuffix(".lua") }.map { inner + "/" + $0 }
    }
    return names.sorted()
  }

  /// The files of `pages/`, sorted, with their folder.
  static func pageNames(in folder: String, problem: (ConfigurationProblem) -> Void = { _ in }) -> [String] {
    if let failure = unlistable("\(folder)/\(pageFolder)", named: pageFolder) { problem(failure) }
    return list(folder + "/" + pageFolder).filter { !isFolder("\(folder)/\(pageFolder)/\($0)") }.sorted().map {
      "\(pageFolder)/\($0)"
    }
  }

  /// The templates in folders below `pages/`, sorted, with their folders.
  static func errorPageNames(in folder: String) -> [String] {
    let pages = "\(folder)/\(pageFolder)"
    return list(pages).filter { isFolder("\(pages)/\($0)") }.flatMap { inner in
      list("\(pages)/\(inner)").filter { $0.hasSuffix(".mustache") && !isFolder("\(pages)/\(inner)/\($0)") }.map {
        "\(pageFolder)/\(inner)/\($0)"
      }
    }.sorted()
  }

  private static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Why the files of a configuration folder cannot be listed.
  /// - Returns: nil if they can.
  private static func problem(ofFolder folder: String) -> String? {
    if let stream = opendir(folder) {
      closedir(stream)
      return nil
    }
    switch errno {
    case ENOENT, ENOTDIR: return "the folder does not exist"
    case EACCES:
      return "permission denied: the gateway's user must be able to read the folder, and enter those above it"
    case let code: return "the folder cannot be read: \(String(cString: strerror(code)))"
    }
  }

  /// The problem of a folder that exists and cannot be listed.
  ///
  /// Attack on ourselves: a folder that the gateway may not read must not count as empty, or the defaults of providers
  /// would replace the operator's policies.
  private static func unlistable(_ path: String, named name: String) -> ConfigurationProblem? {
    let location = SourceLocation(file: name, line: 0)
    var status = stat()
    guard stat(path, &status) == 0 else {
      // Only lstat sees a link whose target is missing or cannot be reached.
      let failure = Failure(errno: errno == ENOENT ? ELOOP : errno)
      guard lstat(path, &status) == 0 else { return nil }
      return ConfigurationProblem(location: location, path: "", message: failure.message)
    }
    guard status.st_mode & S_IFMT == S_IFDIR, let message = problem(ofFolder: path) else { return nil }
    return ConfigurationProblem(location: location, path: "", message: message)
  }

  private static func list(_ path: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).filter { !$0.hasPrefix(".") }
  }

  /// Why a file could not be read.
  struct Failure: Error {
    let message: String

    init(_ message: String) { self.message = message }

    /// Whether the file does not exist.
    var isAbsence: Bool { message == Self.vanished }

    /// The message for a file that gateway.lua names.
    var sentence: String { isAbsence ? "the file does not exist" : message }

    private static let vanished = "the file vanished while it was being read"

    init(errno code: Int32) {
      message =
        switch code {
        case ENOENT: Self.vanished
        case ELOOP: "a dangling or circular symbolic link"
        case EACCES: "permission denied: grant read access to the gateway's user"
        default: "it cannot be read: \(String(cString: strerror(code)))"
        }
    }
  }

  /// Reads a regular file of at most `largestFile` bytes.
  /// - Parameter isSecret: whether to refuse a file that its group or others may read or write.
  static func read(_ path: String, isSecret: Bool = false) -> Result<[UInt8], Failure> {
    // O_NONBLOCK: opening a named pipe must not hang the gateway.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      let code = errno
      var link = stat()
      let isLink = lstat(path, &link) == 0 && link.st_mode & S_IFMT == S_IFLNK
      return .failure(Failure(errno: code == ENOENT && isLink ? ELOOP : code))
    }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return .failure(Failure(errno: errno)) }
    guard status.st_mode & S_IFMT == S_IFREG else { return .failure(Failure("it is not a regular file")) }
    // Attack: another user of this machine, or a compromised service, reads the secret.
    guard !isSecret || !FilePermissions.isShared(status, descriptor) else {
      let mode = String(status.st_mode & 0o777, radix: 8)
      return .failure(Failure("has mode \(mode): its group or others may read it. Run: chmod 600 \(path)"))
    }
    guard let bytes = DescriptorIO.readAll(of: descriptor, most: largestFile + 1) else {
      return .failure(Failure(errno: errno))
    }
    return bytes.count > largestFile ? .failure(Failure("it is larger than 1 MiB")) : .success(bytes)
  }
}
