import MoongateCore

/// `env "NAME"` and `file "path"`: the only ways in for secrets.
struct SecretReader {
  let folder: String
  let environment: [String: String]

  /// The path of a file that is not there; nil where it is, or the secret is no file.
  func missingFile(_ node: LuaNode) -> String? {
    guard case .tagged("file", let arguments) = node.value, case .text(let name)? = arguments.first?.value else { return nil }
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
      switch ConfigurationFiles.read(name.hasPrefix("/") ? name : "\(folder)/\(name)", isSecret: true) {
      case .success(let bytes):
        var text = String(decoding: bytes, as: UTF8.self)
        while let last = text.unicodeScalars.last, last == "\n" || last == "\r" { text.unicodeScalars.removeLast() }
        guard !text.isEmpty else {
          problems.add(node.location, path, "\(name) is empty")
          return nil
        }
        return SecretText(text)
      case .failure(let failure):
        problems.add(node.location, path, "\(name): \(failure.sentence)")
        return nil
      }
    default: break
    }
    problems.add(node.location, path, "secrets come from env \"NAME\" or file \"path\", so that they are not in this file")
    return nil
  }
}
