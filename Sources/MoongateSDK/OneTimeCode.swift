/// The codes of authenticator apps (RFC 4226, RFC 6238).
public enum OneTimeCode {
  /// Makes a decimal code of the HMAC of a counter or period (RFC 4226 section 5.3): the low four bits of the last byte
  /// select four bytes, the highest bit is dropped, and the last digits of that number are the code.
  ///
  /// Ends the process if a parameter is out of its bounds.
  /// - Parameters:
  ///   - mac: the HMAC, at least 20 bytes long.
  ///   - digits: the length of the code, from 6 to 10.
  /// - Returns: the code with its leading zeros.
  public static func truncate(_ mac: [UInt8], digits: Int) -> String {
    precondition(mac.count >= 20, "An HMAC of 20 bytes or more is needed.")
    precondition((6...10).contains(digits), "A code has 6 to 10 digits.")
    let offset = Int(mac[mac.count - 1] & 0x0f)
    var number = mac[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7fff_ffff
    var code = [UInt8](repeating: UInt8(ascii: "0"), count: digits)
    for place in code.indices.reversed() {
      code[place] += UInt8(number % 10)
      number /= 10
    }
    return String(decoding: code, as: UTF8.self)
  }
}
