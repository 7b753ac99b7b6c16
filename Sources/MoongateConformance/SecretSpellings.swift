import Foundation
import MoongateSDK

/// Finds secrets in a text in any spelling that a provider may have made of them: in another case, without spaces and
/// punctuation, in another Unicode form, reversed, or encoded.
struct SecretSpellings {
  /// A shorter spelling could occur anywhere.
  private static let shortest = 4

  /// The folded spellings with their placeholders, longest first.
  private let needles: [(text: [Unicode.Scalar], name: String)]

  /// - Parameter secrets: with the names of their placeholders.
  init(_ secrets: [(text: String, name: String)]) {
    var found: [[Unicode.Scalar]: String] = [:]
    for secret in secrets {
      for spelling in Self.spellings(of: secret.text) {
        let folded = spelling.unicodeScalars.flatMap(Self.folded)
        if folded.count >= Self.shortest, found[folded] == nil { found[folded] = secret.name }
      }
    }
    needles = found.map { (text: $0.key, name: $0.value) }.sorted {
      ($0.text.count, $1.name) > ($1.text.count, $0.name)
    }
  }

  /// The text with a placeholder in place of each spelling. Placeholders that are there already stay.
  func masked(_ text: String) -> String {
    let scalars = Array(text.unicodeScalars)
    var folded: [(scalar: Unicode.Scalar, place: Int)] = []
    var isPlaceholder = false
    for (place, scalar) in scalars.enumerated() {
      if scalar == "‹" { isPlaceholder = true }
      // A placeholder separates what stands before and after it.
      if isPlaceholder { folded.append(("‹", place)) } else { folded += Self.folded(scalar).map { ($0, place) } }
      if scalar == "›" { isPlaceholder = false }
    }
    var names = [String?](repeating: nil, count: scalars.count)
    for needle in needles where needle.text.count <= folded.count {
      for start in 0...(folded.count - needle.text.count) where folded[start].scalar == needle.text[0] {
        let end = start + needle.text.count
        guard folded[start..<end].lazy.map(\.scalar).elementsEqual(needle.text) else { continue }
        for place in folded[start].place...folded[end - 1].place where names[place] == nil {
          names[place] = needle.name
        }
      }
    }
    var shown = ""
    var last: String?
    for (place, scalar) in scalars.enumerated() {
      if let name = names[place] {
        if name != last { shown += "‹\(name)›" }
      } else {
        shown.unicodeScalars.append(scalar)
      }
      last = names[place]
    }
    return shown
  }

  /// The secret as a provider may have normalised and encoded it.
  private static func spellings(of secret: String) -> Set<String> {
    let words = secret.unicodeScalars.filter { CharacterSet.alphanumerics.contains($0) }
    let plain: Set<String> = [
      secret, secret.lowercased(), secret.uppercased(), String(String.UnicodeScalarView(words)),
      secret.trimmingCharacters(in: .whitespacesAndNewlines), secret.filter { !$0.isWhitespace },
      String(String.UnicodeScalarView(words)).lowercased(), String(String.UnicodeScalarView(words)).uppercased(),
      secret.precomposedStringWithCanonicalMapping, secret.decomposedStringWithCanonicalMapping,
      secret.precomposedStringWithCompatibilityMapping,
    ]
    return plain.reduce(into: plain) { spellings, text in
      let bytes = Array(text.utf8)
      let base64 = Data(bytes).base64EncodedString().replacing("=", with: "")
      spellings.formUnion([
        String(text.reversed()), Hex.text(bytes), base64, Base64URL.encode(bytes), PercentEncoding.encode(text),
        Base32.encode(bytes), bytes.map(Self.percentEncoded).joined(),
      ])
    }
  }

  /// A letter or digit, or any other byte as `%2D`, also where RFC 3986 needs no encoding.
  private static func percentEncoded(_ byte: UInt8) -> String {
    let scalar = UnicodeScalar(byte)
    return scalar.isASCII && scalar.properties.isAlphabetic || (0x30...0x39).contains(byte)
      ? String(scalar) : "%" + Hex.text([byte])
  }

  /// The letters and digits of a scalar in lower case, in their compatibility form and without marks; empty for spaces
  /// and punctuation.
  private static func folded(_ scalar: Unicode.Scalar) -> [Unicode.Scalar] {
    if scalar.isASCII {
      switch scalar {
      case "A"..."Z": return [Unicode.Scalar(UInt8(scalar.value) + 32)]
      case "a"..."z", "0"..."9": return [scalar]
      default: return []
      }
    }
    return String(scalar).decomposedStringWithCompatibilityMapping.lowercased().unicodeScalars.filter {
      $0.properties.isAlphabetic || $0.properties.numericType != nil
    }
  }
}
