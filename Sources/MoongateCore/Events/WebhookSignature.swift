import Crypto
import Foundation

/// Signs what is posted to a site of the operator's.
///
/// Attack: somebody between the gateway and the site makes events up, changes them, or sends old ones again.
package enum WebhookSignature {
  /// `t=1732449600,v1=…`: the time in Unix seconds, and HMAC-SHA256 over that time, a full stop and the body, in
  /// hexadecimal.
  /// - Parameter secret: the key.
  package static func header(of body: [UInt8], at now: Timestamp, by secret: SecretText) -> String {
    let time = String(now.seconds)
    let code = HMAC<SHA256>.authenticationCode(
      for: Array("\(time).".utf8) + body, using: SymmetricKey(data: Array(secret.reveal().utf8)))
    return "t=\(time),v1=\(code.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())"
  }
}
