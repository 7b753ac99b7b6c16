import Crypto
import Foundation
import MoongateSDK

/// What is left of a master key that was retired while gateways served: keys that follow from it and open nothing but
/// the marks of devices.
///
/// Attack: counters are named by the oldest key. If it went while gateways count, somebody who guesses would have all
/// attempts again, and every lock would be forgotten. What names counters therefore stays, and cannot be turned back
/// into the key.
struct RetiredKey: Sendable {
  private static let keyLength = 32
  private static let checkLength = 8

  let counting: CountingKeys
  private let devices: [UInt8]
  /// Until when a device is recognised by a mark that was made with it.
  let devicesUntil: Timestamp

  var name: String { counting.name }

  init(_ master: [UInt8], devicesUntil: Timestamp) {
    let keys = DerivedKeys(master)
    counting = keys.counting
    // Where no device is recognised, nothing is kept that could recognise one.
    devices =
      devicesUntil > Timestamp(milliseconds: 0) ? keys.devices.bytes : [UInt8](repeating: 0, count: Self.keyLength)
    self.devicesUntil = devicesUntil
  }

  /// Reads what a line of a ring holds.
  /// - Returns: nil where it was cut, changed, or is another key's.
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

  /// What a line of a ring holds.
  var text: String {
    let time = (0..<8).map { UInt8(truncatingIfNeeded: devicesUntil.milliseconds >> (56 - 8 * Int64($0))) }
    let body = counting.logKey.bytes + counting.counterKey.bytes + devices + counting.fingerprint + time
    return Base64URL.encode(body + Self.check(name, body))
  }

  /// Opens the mark of a device; nil once those that were made with the key have aged out.
  func deviceKey(at now: Timestamp) -> SymmetricKey? { now < devicesUntil ? SymmetricKey(data: devices) : nil }

  private static func check(_ name: String, _ body: [UInt8]) -> [UInt8] {
    Array(SHA256.hash(data: Array(name.utf8) + body).prefix(checkLength))
  }
}
