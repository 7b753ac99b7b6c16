import Foundation

/// Looks for secrets in what a provider lets out, as they are and in the dress that is no disguise: other case, reversed, hexadecimal, base64,
/// percent-encoded, with spaces or hyphens between.
struct SecretSearch: Sendable {
  private let forms: [[UInt8]]

  /// - Parameter secrets: those under four bytes are left out: they stand in any text.
  init(_ secrets: some Sequence<String>) {
    var forms: Set<[UInt8]> = []
    for secret in secrets where secret.utf8.count >= 4 {
      let bytes = Array(secret.utf8)
      let base64 = Data(bytes).base64EncodedString().replacing("=", with: "")
      let dressed = [
        bytes, Array(bytes.reversed()), Array(Hex.text(bytes).utf8), Array(base64.utf8),
        Array(base64.replacing("+", with: "-").replacing("/", with: "_").utf8),
        Array((secret.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? secret).utf8),
      ]
      forms.formUnion(dressed.map(Self.plain).filter { $0.count >= 4 })
    }
    self.forms = Array(forms)
  }

  func isIn(_ text: String) -> Bool { isIn(Array(text.utf8)) }

  func isIn(_ bytes: [UInt8]) -> Bool {
    let plain = Self.plain(bytes)
    return forms.contains { form in
      guard form.count <= plain.count else { return false }
      return (0...(plain.count - form.count)).contains { plain[$0] == form[0] && plain[$0..<($0 + form.count)].elementsEqual(form) }
    }
  }

  /// Small letters, digits and what is no ASCII; spaces and punctuation hide nothing.
  private static func plain(_ bytes: [UInt8]) -> [UInt8] {
    bytes.compactMap { byte in
      switch byte {
      case 48...57, 97...122, 0x80...: byte
      case 65...90: byte + 32
      default: nil
      }
    }
  }
}
