import Crypto
import Foundation
import MoongateCore

/// An independent authenticator app: reads an `otpauth:` address and computes codes.
struct AuthenticatorApp {
  private let key: SymmetricKey

  /// - Parameter secret: Base32, with or without spaces.
  init?(secret: String) {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    var bits = ""
    for letter in secret where letter != " " {
      guard let value = alphabet.firstIndex(of: letter) else { return nil }
      let five = String(value, radix: 2)
      bits += String(repeating: "0", count: 5 - five.count) + five
    }
    let bytes = stride(from: 0, to: bits.count - bits.count % 8, by: 8).compactMap { start in
      UInt8(bits.dropFirst(start).prefix(8), radix: 2)
    }
    key = SymmetricKey(data: bytes)
  }

  /// - Parameter offset: The number of time steps from the current code.
  func code(at now: Timestamp, offset: Int64 = 0) -> String {
    let counter = withUnsafeBytes(of: UInt64(now.milliseconds / 30_000 + offset).bigEndian) { Data($0) }
    let mac = Data(HMAC<Insecure.SHA1>.authenticationCode(for: counter, using: key))
    let start = Int(mac[19] & 15)
    let number =
      (UInt32(mac[start]) & 127) << 24 | UInt32(mac[start + 1]) << 16 | UInt32(mac[start + 2]) << 8
      | UInt32(mac[start + 3])
    return String(format: "%06u", number % 1_000_000)
  }
}
