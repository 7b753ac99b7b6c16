import Crypto
import Foundation
import MoongateSDK

/// Signs requests to an operator's endpoint.
///
/// Attack: someone between the gateway and the endpoint invents events, changes them, or replays old ones.
package enum WebhookSignature {
  /// The header value `t=1732449600,v1=…`: the time in Unix seconds, and the hexadecimal HMAC-SHA256 of that time, a
  /// full stop and the body.
  /// - Parameter secret: the key.
  package static func header(of body: [UInt8], at now: Timestamp, by secret: SecretText) -> String {
    let time = String(now.seconds)
    let code = HMAC<SHA256>.authenticationCode(
      for: Array("\(time).".utf8) + body, using: SymmetricKey(data: Array(secret.reveal().utf8)))
    return "t=\(time),v1=\(Hex.encode(code))"
  }
}
