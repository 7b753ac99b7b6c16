import Crypto
import Foundation
import MoongateCore
import MoongateSDK

/// Reads `exec { "./program", …arguments…, env = { … }, timeout = "2s", …settings… }`.
final class ExecReader {
  /// A larger file is not a program, for example a disk image.
  private static let largestProgram = 512 << 20
  private static let longestTimeout: Duration = .seconds(30)
  /// The maximum number of flow files, and of word files, that are read next to a program.
  private static let maxTexts = 64

  /// The configuration folder.
  let folder: String
  let secrets: SecretReader
  /// The directories to search for a program without a slash in its name.
  let searchPath: String
  let problems: Problems
  /// Files that were looked up, whether they exist or not. When one of them changes, the folder is read again.
  private(set) var lookedFor: [String] = []

  init(folder: String, secrets: SecretReader, searchPath: String, problems: Problems) {
    self.folder = folder
    self.secrets = secrets
    self.searchPath = searchPath
    self.problems = problems
  }

  /// The program entries under `providers`, by name; nil for those that cannot be read.
  func entries(_ gateway: LuaNode, taken: [ProviderName]) -> [String: ProgramEntry?] {
    guard case .table(let table) = gateway.value, case .table(let providers)? = table.fields["providers"]?.value else {
      return [:]
    }
    var entries: [String: ProgramEntry?] = [:]
    for (name, node) in providers.fields.sorted(by: { $0.key < $1.key }) {
      guard case .tagged("exec", let arguments) = node.value, let body = arguments.first else { continue }
      entries.updateValue(read(body, name, at: node.location, taken), forKey: name)
    }
    return entries
  }

  private func read(_ body: LuaNode, _ name: String, at location: SourceLocation, _ taken: [ProviderName])
    -> ProgramEntry?
  {
    let path = "providers.\(name)"
    guard let provider = Field.provider(name, at: location, path, problems) else { return nil }
    guard !taken.contains(provider) else {
      // A duplicate entry is already reported as one mistake.
      if problems.all.contains(where: {
        $0.location.file == location.file && $0.path == name && $0.message.hasPrefix(LuaFiles.saidTwice)
      }) {
        return nil
      }
      problems.add(
        location, path,
        "duplicate name: the gateway has a built-in provider `\(name)`; choose another name")
      return nil
    }
    let before = problems.all.count
    guard case .table(let table) = body.value else { return nil }
    let words = table.items.enumerated().compactMap { index, item in
      Field.text(item, "\(path)[\(index + 1)]", problems).map { ($0, item.location) }
    }
    guard let (program, place) = words.first else {
      problems.add(location, path, "must name a program, as in exec { \"./\(name).py\" }")
      return nil
    }
    let environment = readEnvironment(table, path)
    var timeout = Duration.seconds(5)
    if let node = table.fields["timeout"], let said = Field.duration(node, "\(path).timeout", problems) {
      timeout = said
      if said > Self.longestTimeout {
        problems.add(
          node.location, "\(path).timeout",
          "must be at most \"30s\": users wait for each call, and the gateway stops within ten seconds")
      }
    }
    guard let file = find(program, path, place), let digest = digest(of: file, words.dropFirst().map(\.0), path, place),
      problems.all.count == before
    else { return nil }
    return ProgramEntry(
      name: provider, location: location, path: file, arguments: words.dropFirst().map(\.0), environment: environment,
      timeout: timeout,
      folder: absolute("."), digest: digest)
  }

  /// The provider's own settings in an entry: the table after `exec` without the gateway's fields, or the table after a
  /// provider's name.
  static func settings(_ node: LuaNode, types: [String]) -> LuaNode {
    guard case .tagged(let word, let arguments) = node.value, case .table(var table)? = arguments.first?.value,
      word == "exec" || types.contains(word)
    else { return node }
    guard word == "exec" else { return LuaNode(value: .table(table), location: node.location) }
    table.items = []
    table.fields["env"] = nil
    table.fields["timeout"] = nil
    return LuaNode(value: .table(table), location: node.location)
  }

  private func readEnvironment(_ table: LuaTable, _ path: String) -> [String: SecretText] {
    guard let node = table.fields["env"], let reader = TableReader(node, nil, path: "\(path).env", problems: problems)
    else { return [:] }
    var environment: [String: SecretText] = [:]
    for name in reader.names {
      guard let node = reader.take(name) else { continue }
      guard name.wholeMatch(of: /[A-Za-z_][A-Za-z0-9_]{0,63}/) != nil else {
        problems.add(
          node.location, reader.path(name), "is not a valid name of an environment variable: use letters, digits and _")
        continue
      }
      // Attack on ourselves: these variables load code that was not checked into the program.
      guard !name.hasPrefix("LD_") else {
        problems.add(node.location, reader.path(name), "is not allowed: LD_ variables change which code runs")
        continue
      }
      let value =
        if case .text = node.value { Field.text(node, reader.path(name), problems).map { SecretText($0) } } else {
          secrets.read(node, reader.path(name), problems)
        }
      if let value {
        if value.reveal().utf8.contains(0) { problems.add(node.location, reader.path(name), "contains a zero byte") }
        environment[name] = value
      }
    }
    return environment
  }

  // MARK: files

  private func absolute(_ path: String) -> String {
    let base = URL(filePath: folder, directoryHint: .isDirectory)
    let file = URL(filePath: path, relativeTo: base).standardizedFileURL.path(percentEncoded: false)
    return file.count > 1 && file.hasSuffix("/") ? String(file.dropLast()) : file
  }

  /// The program's file. No shell is involved. A name with a slash is a path relative to the configuration folder; a
  /// name without one is searched in PATH.
  private func find(_ program: String, _ path: String, _ place: SourceLocation) -> String? {
    let candidates =
      program.contains("/")
      ? [absolute(program)] : searchPath.split(separator: ":").filter { $0.hasPrefix("/") }.map { "\($0)/\(program)" }
    if program.contains("/") { lookedFor += candidates }
    guard let file = candidates.first(where: Self.isFile) else {
      let hint =
        program.contains("/")
        ? "paths are relative to the configuration folder"
        : "write \"./\(program)\" for one in the configuration folder"
      problems.add(place, path, "program not found: \(program) (\(hint))")
      return nil
    }
    guard access(file, X_OK) == 0 else {
      problems.add(place, path, "\(program) is not executable: run `chmod +x \(program)`")
      return nil
    }
    // Attack: any user of this machine replaces the program that receives all codes.
    var status = stat()
    if stat(file, &status) == 0, status.st_mode & S_IWOTH != 0 {
      problems.add(place, path, "\(program) is writable by every user of this machine: run `chmod o-w \(program)`")
      return nil
    }
    return file
  }

  private static func isFile(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
  }

  /// A digest over the program, each argument that names a file of the folder (the script of an interpreter), the
  /// modules next to these files, and their policy.lua, cases.lua, flows and words. Programs announce their texts in
  /// `hello`, so a change makes them another provider.
  private func digest(of program: String, _ arguments: [String], _ path: String, _ place: SourceLocation) -> String? {
    var hash = SHA256()
    let scripts = arguments.filter { !$0.hasPrefix("-") }.map(absolute).filter(Self.isFile)
    var beside: [String] = []
    for file in [program] + scripts {
      beside += texts(beside: file).filter { !beside.contains($0) }
      let modules = ProgramModules(of: file, configuration: absolute("."))
      if modules.isCut {
        problems.warn(
          place, path,
          "more than \(ProgramModules.most) files like \(file.split(separator: "/").last ?? ""), or folders, are next to it, so changes of the others are not detected; "
            + "move it to its own folder")
      }
      lookedFor += modules.folders
      beside += modules.files.filter { $0 != program && !scripts.contains($0) && !beside.contains($0) }
    }
    lookedFor += scripts + beside
    for file in [program] + scripts + beside {
      guard let bytes = Self.hash(file) else {
        problems.add(place, path, "\(file) cannot be read, or is larger than 512 MiB")
        return nil
      }
      hash.update(data: bytes)
    }
    return Hex.encode(hash.finalize())
  }

  /// policy.lua, cases.lua, flows/*.lua and words/*.words in the program's folder. In the configuration folder itself,
  /// flows belong to the operator.
  private func texts(beside program: String) -> [String] {
    let folder = URL(filePath: program).deletingLastPathComponent().path(percentEncoded: false)
    var found = [folder + "policy.lua", folder + "cases.lua"]
    if folder != absolute(".") + "/" {
      for (name, ending) in [("flows", ".lua"), ("words", ".words")] {
        lookedFor.append(folder + name)
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder + name)) ?? []
        found += names.sorted().filter { $0.hasSuffix(ending) && !$0.hasPrefix(".") }.prefix(Self.maxTexts).map {
          "\(folder)\(name)/\($0)"
        }
      }
    }
    return found.filter(Self.isFile)
  }

  private static func hash(_ file: String) -> [UInt8]? {
    let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var hash = SHA256()
    var total = 0
    while let chunk = DescriptorIO.readSome(of: descriptor, most: 1 << 18) {
      if chunk.isEmpty { return Array(hash.finalize()) }
      hash.update(data: chunk)
      total += chunk.count
      if total > largestProgram { return nil }
    }
    return nil
  }
}
