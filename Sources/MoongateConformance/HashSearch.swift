import Foundation
import MoongateSDK

/// Searches a record for a fast hash of a secret: without salt, with a guessable salt, or with a salt from the record.
struct HashSearch {
  /// A hash that was found.
  struct Found {
    let digest: Digest
    /// The salt for messages; nil for none.
    let salt: String?
    /// Whether the salt cannot be guessed. Then the finding is only that the hash is too fast.
    let isSalted: Bool
  }

  /// The maximum number of texts in a record that are tried as salts.
  private static let maxSalts = 24

  private let record: [UInt8]
  private let guessable: [(name: String, salt: [UInt8])]
  private let own: [[UInt8]]

  /// - Parameter guessable: public data of the account, by name.
  init(_ record: [UInt8], guessable: [(name: String, text: String)]) {
    self.record = record.map(\.inLowerCase)
    self.guessable = guessable.map { ($0.name, Array($0.text.utf8)) }
    own = Self.salts(in: record)
  }

  /// - Parameter isChosen: whether a user has chosen the secret. A random secret may be stored under a fast hash with a
  ///   salt.
  func find(_ secret: String, isChosen: Bool) -> Found? {
    for text in Self.spellings(of: secret) {
      for digest in Digest.allCases {
        if isIn(digest.of(text)) { return Found(digest: digest, salt: nil, isSalted: false) }
        for (name, salt) in guessable where Self.salted(text, salt, digest).contains(where: isIn) {
          return Found(digest: digest, salt: name, isSalted: false)
        }
        guard isChosen else { continue }
        for salt in own where Self.salted(text, salt, digest).contains(where: isIn) {
          return Found(digest: digest, salt: nil, isSalted: true)
        }
      }
    }
    return nil
  }

  /// Forms in which a provider may have normalized the secret before hashing.
  private static func spellings(of secret: String) -> Set<[UInt8]> {
    let plain = secret.filter { $0.isLetter || $0.isNumber }
    return Set([secret, plain, plain.lowercased(), plain.uppercased()].map { Array($0.utf8) }.filter { !$0.isEmpty })
  }

  private static func salted(_ secret: [UInt8], _ salt: [UInt8], _ digest: Digest) -> [[UInt8]] {
    let colon = [UInt8(ascii: ":")]
    return [
      digest.of(salt + secret), digest.of(secret + salt), digest.of(salt + colon + secret),
      digest.of(secret + colon + salt),
      digest.code(of: secret, key: salt),
    ]
  }

  /// Whether a digest is in the record: raw, in hexadecimal, in base64, or as a list of numbers.
  private func isIn(_ digest: [UInt8]) -> Bool {
    let base64 = Data(digest).base64EncodedString().replacing("=", with: "")
    let forms = [
      digest, Array(Hex.text(digest).utf8), Array(base64.utf8),
      Array(Base64URL.encode(digest).utf8),
      Array(digest.map(String.init).joined(separator: ",").utf8),
    ]
    return forms.contains { form in
      let form = form.map(\.inLowerCase)
      guard let first = form.first, form.count <= record.count else { return false }
      return (0...(record.count - form.count)).contains {
        record[$0] == first && record[$0..<($0 + form.count)].elementsEqual(form)
      }
    }
  }

  /// The words of a record, as they are and decoded from hexadecimal and base64.
  private static func salts(in record: [UInt8]) -> [[UInt8]] {
    let words = record.split {
      !((48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0)
        || [43, 45, 47, 61, 95].contains($0) || $0 >= 0x80)
    }
    var salts: [[UInt8]] = []
    for word in words.filter({ (4...128).contains($0.count) }).prefix(maxSalts) {
      salts.append(Array(word))
      let text = String(decoding: word, as: UTF8.self)
      if word.count.isMultiple(of: 2), let bytes = bytes(ofHexadecimal: text) { salts.append(bytes) }
      if let data = Data(base64Encoded: text), !data.isEmpty { salts.append(Array(data)) }
    }
    return salts
  }

  private static func bytes(ofHexadecimal text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while !rest.isEmpty {
      guard let byte = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else { return nil }
      bytes.append(byte)
      rest = rest.dropFirst(2)
    }
    return bytes
  }
}
