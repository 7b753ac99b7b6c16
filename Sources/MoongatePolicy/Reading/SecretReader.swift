import MoongateCore

/// Reads `env "NAME"`, `file "path"` and `credential "name"`, the only sources of secrets.
struct SecretReader {
  let folder: String
  let environment: [String: String]
  /// Records the files that are read.
  let files = NamedFiles()

  /// The file of a systemd credential (systemd.exec(5), `LoadCredential=`), in the folder that `CREDENTIALS_DIRECTORY`
  /// names.
  /// - Returns: nil, with a problem, if systemd provides no credential of this name.
  func credentialFile(_ name: String, _ location: SourceLocation, _ path: String, _ problems: Problems) -> String? {
    guard !name.isEmpty, !name.contains("/"), !name.hasPrefix(".") else {
      problems.add(location, path, "\"\(name)\" is not a valid credential name, such as credential \"master.key\"")
      return nil
    }
    guard let directory = environment["CREDENTIALS_DIRECTORY"], directory.hasPrefix("/") else {
      problems.add(
        location, path,
        """
        systemd hands this process no credentials (CREDENTIALS_DIRECTORY is not set): start it by its unit, with \
        LoadCredential=\(name):/etc/moongate/credentials/\(name). For a command, set CREDENTIALS_DIRECTORY to the folder with the credential's file
        """)
      return nil
    }
    let file = "\(directory)/\(name)"
    if case .failure(let failure) = files.readSecret(file) {
      let told =
        failure.isAbsence
        ? "there is no credential \(name) in \(directory): add LoadCredential=\(name):/etc/moongate/credentials/\(name) to the unit"
        : "the credential \(name): \(failure.sentence)"
      problems.add(location, path, told)
      return nil
    }
    return file
  }

  /// The path of a secret's file that does not exist; nil if it exists or the secret is not a file.
  func missingFile(_ node: LuaNode) -> String? {
    guard case .tagged("file", let arguments) = node.value, case .text(let name)? = arguments.first?.value else {
      return nil
    }
    let path = name.hasPrefix("/") ? name : "\(folder)/\(name)"
    if case .failure(let failure) = ConfigurationFiles.read(path), failure.isAbsence { return path }
    return nil
  }

  /// The secret, without the trailing newline of its file. A missing secret is a problem. No message contains a secret.
  /// - Parameter advice: what to do if its file does not exist.
  func read(_ node: LuaNode, _ path: String, _ problems: Problems, ifAbsent advice: String? = nil) -> SecretText? {
    switch node.value {
    case .tagged("env", let arguments):
      guard case .text(let name)? = arguments.first?.value else { break }
      guard let value = environment[name], !value.isEmpty else {
        problems.add(
          node.location, path, "the environment variable is missing: \(name). Set it before the gateway starts")
        return nil
      }
      return SecretText(value)
    case .tagged("file", let arguments):
      guard case .text(let name)? = arguments.first?.value else { break }
      let file = name.hasPrefix("/") ? name : "\(folder)/\(name)"
      do throws(Unreadable) { return try read(file: file, named: name) } catch {
        problems.add(node.location, path, error.message + (error.isAbsence ? advice.map { "; \($0)" } ?? "" : ""))
        return nil
      }
    case .tagged("credential", let arguments):
      guard case .text(let name)? = arguments.first?.value else { break }
      guard let file = credentialFile(name, node.location, path, problems) else { return nil }
      do throws(Unreadable) { return try read(file: file, named: name) } catch {
        problems.add(node.location, path, error.message)
        return nil
      }
    default: break
    }
    problems.add(
      node.location, path,
      "must be a secret: use env \"NAME\", file \"path\" or credential \"name\" instead of the value itself")
    return nil
  }

  /// Why a file holds no secret.
  private struct Unreadable: Error {
    let message: String
    var isAbsence = false
  }

  private func read(file: String, named name: String) throws(Unreadable) -> SecretText {
    switch files.readSecret(file) {
    case .success(let bytes):
      var text = String(decoding: bytes, as: UTF8.self)
      while let last = text.unicodeScalars.last, last == "\n" || last == "\r" { text.unicodeScalars.removeLast() }
      guard !text.isEmpty else { throw Unreadable(message: "\(name) is empty") }
      return SecretText(text)
    case .failure(let failure):
      throw Unreadable(message: "\(name): \(failure.sentence)", isAbsence: failure.isAbsence)
    }
  }
}
