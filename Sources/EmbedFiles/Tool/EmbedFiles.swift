import Foundation

/// `embed-files OUTPUT FILE…`: writes a Swift file in which each file is a constant, named after it: `en.words` is
/// `PackageResources.en_words`. For a provider, whose folder `words` has a file per language,
/// `PackageResources.translations` lists those.
@main enum EmbedFiles {
  static func main() throws {
    let arguments = CommandLine.arguments.dropFirst().map { URL(fileURLWithPath: $0) }
    guard let output = arguments.first else { throw CocoaError(.fileNoSuchFile) }
    let files = arguments.dropFirst()
    let lines = try files.map(constant).joined() + translations(in: Array(files))
    // Foundation reads what is no text.
    try Data("import Foundation\n\nenum PackageResources {\n\(lines)}\n".utf8).write(to: output)
  }

  /// The lines that list a provider's translations, sorted by language, as `StepWords` takes them; empty if there are
  /// none.
  private static func translations(in files: [URL]) -> String {
    let words = files.filter {
      $0.pathExtension == "words" && $0.deletingLastPathComponent().lastPathComponent == "words"
    }.map { (tag: $0.deletingPathExtension().lastPathComponent, name: name(of: $0)) }
    if words.isEmpty { return "" }
    let lines = words.sorted { $0.tag < $1.tag }.map { "    (\(literal($0.tag)), \($0.name)),\n" }
    return "  static let translations: [(tag: String, file: [UInt8])] = [\n\(lines.joined())  ]\n"
  }

  /// The constant that holds a file.
  private static func name(of file: URL) -> String {
    String(file.lastPathComponent.map { $0.isLetter || $0.isNumber ? $0 : "_" })
  }

  /// The line that holds a file.
  private static func constant(_ file: URL) throws -> String {
    let bytes = try Data(contentsOf: file)
    let value = String(validating: bytes, as: UTF8.self).map { "Array(\(literal($0)).utf8)" }
    return
      "  static let \(name(of: file)): [UInt8] = \(value ?? "Array(Data(base64Encoded: \"\(bytes.base64EncodedString())\") ?? Data())")\n"
  }

  /// The text as it is written in Swift.
  private static func literal(_ text: String) -> String {
    var written = String.UnicodeScalarView("\"".unicodeScalars)
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x22, 0x5C: written.append(contentsOf: "\\\(scalar)".unicodeScalars)
      // Control characters, and the mark at whose sight the compiler drops it.
      case ..<0x20, 0x7F, 0xFEFF: written.append(contentsOf: "\\u{\(String(scalar.value, radix: 16))}".unicodeScalars)
      default: written.append(scalar)
      }
    }
    return String(written) + "\""
  }
}
