/// Authenticator models.
enum AAGUID {
  /// The names of common models, for the list of passkeys. The model is reported by the authenticator, so it is a label
  /// and no proof.
  private static let names = [
    "fbfc3007-154e-4ecc-8c0b-6e020557d7bd": "iCloud Keychain",
    "ea9b8d66-4d01-1d21-3ce4-b6b48cb575d4": "Google Password Manager",
    "adce0002-35bc-c60a-648b-0b25f1f05503": "Chrome on Mac", "08987058-cadc-4b81-b6e1-30de50dcbe96": "Windows Hello",
    "9ddd1817-af5a-4672-a2b9-3e3dd95000a9": "Windows Hello", "6028b017-b1d4-4c02-b4b3-afcdafc96bb2": "Windows Hello",
    "53414d53-554e-4700-0000-000000000000": "Samsung Pass", "bada5566-a7aa-401f-bd96-45619a55120d": "1Password",
    "d548826e-79b4-db40-a3d8-11116f7e8349": "Bitwarden",
  ]

  /// The UUID in lower case.
  static func text(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef")
    var text = ""
    for (index, byte) in bytes.enumerated() {
      if [4, 6, 8, 10].contains(index) { text += "-" }
      text += "\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
    }
    return text
  }

  /// The name of the model; nil if unknown.
  static func make(_ aaguid: String) -> String? { names[aaguid] }

  /// The default name of a new passkey of the model.
  static func name(_ aaguid: String) -> String { make(aaguid) ?? "Passkey" }
}
