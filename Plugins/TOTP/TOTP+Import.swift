import Foundation
import MoongateSDK

extension TOTP: FactorImporting {
  /// Google Authenticator's keys have 80 bits; RFC 4226 section 4 asks for 128. The HMAC of a longer key than its block
  /// is that of the key's digest.
  private static let importedKeySizes = 10...64

  public var importedField: String { "totp" }

  /// `{"secret": "BASE32"}`: the key of an app with the parameters of `TimeCode`.
  public func record(importing json: [UInt8], at now: Int64) throws(FactorImportProblem) -> [UInt8] {
    guard let fields = try? JSONSerialization.jsonObject(with: Data(json)) as? [String: Any],
      let secret = fields["secret"] as? String
    else { throw FactorImportProblem("must be an object with `secret`, the key in Base32") }
    if let other = fields.keys.sorted().first(where: { $0 != "secret" }) {
      throw FactorImportProblem(
        "has the field `\(other)`, but only `secret` is read: codes are made with SHA-1, 6 digits and 30 seconds")
    }
    guard let key = Base32.decode(secret), Self.importedKeySizes.contains(key.count) else {
      throw FactorImportProblem("must have a `secret` of 16 to 103 letters of Base32 (10 to 64 bytes)")
    }
    guard let bytes = try? TOTPRecord(key: key, step: 0, recovery: .empty).bytes else {
      throw FactorImportProblem("cannot be stored")
    }
    return bytes
  }
}
