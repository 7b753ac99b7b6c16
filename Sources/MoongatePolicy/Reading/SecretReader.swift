import MoongateCore

/// `env "NAME"`, `file "path"` and `credential "name"`: the only ways in for secrets.
struct SecretReader {
  let folder: String
  let environment: [String: String]

  /// The file of a credential that systemd hands over (systemd.exec(5), `LoadCredential=`), in the folder that
  /// `CREDENTIALS_DIRECTORY` names.
  /// - Returns: nil, after telling why, if systemd hands over no credential of the name.
  func credentialFile(_ name: String, _ location: SourceLocation, _ path: String, _ problems: Problems) -> String? {
    guard !name.isEmpty, !name.contains("/"), !name.hasPrefix(".") else {
      problems.add(location, path, "\"\(name)\" is no name of a credential, such as credential \"master.key\"")
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
    if case .failure(let failure) = ConfigurationFiles.read(file, isSecret: true) {
      let told =
        failure.isAbsence
        ? "there is no credential \(name) in \(directory): add LoadCredential=\(name):/etc/moongate/credentials/\(name) to the unit"
        : "the credential \(name): \(failure.sentence)"
      problems.add(location, path, told)
      return nil
    }
    return file
  }

  /// The path of a file that is not there; nil where it is, or the secret is no file.
  func missingFile(_ node: LuaNode) -> String? {
    guard case .tagged("file", let arguments) = node.value, case .text(let name)? = arguments.first?.value else {
      return nil
    }
    let path = name.hasPrefix("/") ? name : "\(folder)/\(name)"
    if case .failure(let failure) = ConfigurationFiles.read(path), failure.isAbsence { return path }
    return nil
  }

  /// The secret, without the line end of its file. A missing one is a problem; none is ever shown.
  func read(_ node: LuaNode, _ path: String, _ problems: Problems) -> SecretText? {
    switch node.value {
    case .tagged("env", let arguments):
      guard case .text(let name)? = arguments.first?.value else { break }
      guard let value = environment[name], !value.isEmpty else {
        problems.add(node.location, path, "the environment has no \(name): set it before the gateway starts")
        return nil
      }
      return SecretText(value)
    case .tagged("file", let arguments):
      guard case .text(let name)? = arguments.first?.value else { break }
      return read(file: name.hasPrefix("/") ? name : "\(folder)/\(name)", named: name, node.location, path, problems)
    case .tagged("credential", let arguments):
      guard case .text(let name)? = arguments.first?.value else { break }
      return credentialFile(name, node.location, path, problems).flatMap {
        read(file: $0, named: name, node.location, path, problems)
      }
    default: break
    }
    problems.add(
      node.location, path,
      "secrets come from env \"NAME\", file \"path\" or credential \"name\", so that they are not in this file")
    return nil
  }

  private func read(file: String, named name: String, _ location: SourceLocation, _ path: String, _ problems: Problems)
    -> SecretText?
  {
    switch ConfigurationFiles.read(file, isSecret: true) {
    case .success(let bytes):
      var text = String(decoding: bytes, as: UTF8.self)
      while let last = text.unicodeScalars.last, last == "\n" || last == "\r" { text.unicodeScalars.removeLast() }
      guard !text.isEmpty else {
        problems.add(location, path, "\(name) is empty")
        return nil
      }
      return SecretText(text)
    case .failure(let failure):
      problems.add(location, path, "\(name): \(failure.sentence)")
      return nil
    }
  }
}
