import Foundation

/// `embed-files OUTPUT FILE…`: writes a Swift file in which each file is a constant, named after it: `en.words` is
/// `PackageResources.en_words`.
@main enum EmbedFiles {
  static func main() throws {
    let arguments = CommandLine.arguments.dropFirst().map { URL(fileURLWithPath: $0) }
    guard let output = arguments.first else { throw CocoaError(.fileNoSuchFile) }
    let constants = try arguments.dropFirst().map(constant)
    // Foundation reads what is no text.
    try Data("import Foundation\n\nenum PackageResources {\n\(constants.joined())}\n".utf8).write(to: output)
  }

  /// The line that holds a file.
  private static func constant(_ file: URL) throws -> String {
    let name = String(file.lastPathComponent.map { $0.isLetter || $0.isNumber ? $0 : "_" })
    let bytes = try Data(contentsOf: file)
    let value = String(validating: bytes, as: UTF8.self).map { "Array(\(literal($0)).utf8)" }
    return
      "  static let \(name): [UInt8] = \(value ?? "Array(Data(base64Encoded: \"\(bytes.base64EncodedString())\") ?? Data())")\n"
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
