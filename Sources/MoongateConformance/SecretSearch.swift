import Foundation
import MoongateSDK

/// Searches the output of a provider for secrets, in plain text and in simple encodings: other case, reversed,
/// hexadecimal, base64, percent-encoded, with spaces or hyphens.
struct SecretSearch: Sendable {
  /// Without spaces and punctuation, for texts.
  private let forms: [[UInt8]]
  /// Unchanged, for records, where digits of several numbers must not match a code.
  private let exact: [[UInt8]]

  /// - Parameter secrets: those under four bytes are ignored because they could occur in any text.
  init(_ secrets: some Sequence<String>) {
    var forms: Set<[UInt8]> = []
    var exact: Set<[UInt8]> = []
    for secret in secrets where secret.utf8.count >= 4 {
      let bytes = Array(secret.utf8)
      let base64 = Data(bytes).base64EncodedString().replacing("=", with: "")
      let dressed = [
        bytes, Array(bytes.reversed()), Array(Hex.text(bytes).utf8), Array(base64.utf8),
        Array(Base64URL.encode(bytes).utf8),
        Array(PercentEncoding.encode(secret).utf8),
      ]
      forms.formUnion(dressed.map(Self.plain).filter { $0.count >= 4 })
      exact.formUnion(dressed.map { $0.map(\.inLowerCase) })
    }
    self.forms = Array(forms)
    self.exact = Array(exact)
  }

  /// Whether the text contains a secret.
  func isIn(_ text: String) -> Bool { Self.find(forms, in: Self.plain(Array(text.utf8))) }

  /// Whether the record contains a secret.
  func isIn(_ bytes: [UInt8]) -> Bool { Self.find(exact, in: bytes.map(\.inLowerCase)) }

  private static func find(_ forms: [[UInt8]], in bytes: [UInt8]) -> Bool {
    forms.contains { form in
      guard form.count <= bytes.count else { return false }
      return (0...(bytes.count - form.count)).contains {
        bytes[$0] == form[0] && bytes[$0..<($0 + form.count)].elementsEqual(form)
      }
    }
  }

  /// Lower-case letters, digits and non-ASCII bytes. Spaces and punctuation are removed.
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

extension UInt8 {
  /// The byte, in lower case if it is an ASCII letter.
  var inLowerCase: UInt8 { (65...90).contains(self) ? self + 32 : self }
}
