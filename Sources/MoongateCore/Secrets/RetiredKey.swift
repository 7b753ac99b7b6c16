import Crypto
import Foundation
import MoongateSDK

/// What remains of a master key that was retired while gateways were running: derived keys that open nothing but device
/// tokens.
///
/// Attack: counters are named by the oldest key. If it were removed while gateways use it, an attacker would get all
/// attempts again, and every lock would be lost. The key that names counters therefore stays. The master key cannot be
/// computed from it.
struct RetiredKey: Sendable {
  private static let keyLength = 32
  private static let checkLength = 8

  let counting: CountingKeys
  private let devices: [UInt8]
  /// Until when device tokens that were sealed with the key are accepted.
  let devicesUntil: Timestamp

  var name: String { counting.name }

  init(_ master: [UInt8], devicesUntil: Timestamp) {
    let keys = DerivedKeys(master)
    counting = keys.counting
    // If devices are no longer recognised, the key for them is not kept.
    devices =
      devicesUntil > Timestamp(milliseconds: 0) ? keys.devices.bytes : [UInt8](repeating: 0, count: Self.keyLength)
    self.devicesUntil = devicesUntil
  }

  /// Parses a line of a ring.
  /// - Returns: nil if it was truncated, changed, or belongs to another key.
  init?(reading text: String, name: String) {
    let length = Self.keyLength
    let expected = 3 * length + CountingKeys.fingerprintLength + 8 + Self.checkLength
    guard let bytes = Base64URL.decode(text), bytes.count == expected else { return nil }
    let body = bytes.dropLast(Self.checkLength)
    guard constantTimeEquals(Self.check(name, Array(body)), Array(bytes.suffix(Self.checkLength))) else { return nil }
    counting = CountingKeys(
      name: name, logs: SymmetricKey(data: body.prefix(length)),
      counters: SymmetricKey(data: body.dropFirst(length).prefix(length)),
      fingerprint: Array(body.dropFirst(3 * length).prefix(CountingKeys.fingerprintLength)))
    devices = Array(body.dropFirst(2 * length).prefix(length))
    devicesUntil = Timestamp(milliseconds: body.suffix(8).reduce(Int64(0)) { $0 << 8 | Int64($1) })
  }

  /// The line of a ring.
  var text: String {
    let time = (0..<8).map { UInt8(truncatingIfNeeded: devicesUntil.milliseconds >> (56 - 8 * Int64($0))) }
    let body = counting.logKey.bytes + counting.counterKey.bytes + devices + counting.fingerprint + time
    return Base64URL.encode(body + Self.check(name, body))
  }

  /// The key for device tokens; nil once all tokens that were sealed with it have expired.
  func deviceKey(at now: Timestamp) -> SymmetricKey? { now < devicesUntil ? SymmetricKey(data: devices) : nil }

  private static func check(_ name: String, _ body: [UInt8]) -> [UInt8] {
    Array(SHA256.hash(data: Array(name.utf8) + body).prefix(checkLength))
  }
}
