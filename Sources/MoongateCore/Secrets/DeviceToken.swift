import MoongateSDK

/// The token of a device that has passed steps before, so that attackers who try someone's identifier do not lock its
/// owner out. Sealed by the core; a client can neither read nor create one.
///
/// It contains, as keyed hashes, the accounts that trust this device and the providers that it has passed for them.
/// Each mark is bound to the ID under which the account trusts the device (`TrustedDevice.id`), and counts only while
/// the account lists that ID: its owner can remove the device, and a recovery removes all.
///
/// Attack: an attacker registers an account with the victim's address, and the device stays trusted after the victim
/// has recovered the account; or a trusted device is sold or stolen.
///
/// Attack: someone who can pass one step (with a stolen SIM) signs in again and again, to get fresh counters for
/// another one (the PIN). A mark is therefore for one provider and one account: if this device has never passed the
/// PIN, its attempts at it count as those of an unknown device.
package struct DeviceToken: Sendable, Equatable {
  /// How long it is valid after the last sign-in.
  package static let lifetime: Duration = .seconds(365 * 86_400)
  private static let version: UInt8 = 1
  private static let idLength = 16
  private static let markLength = 12
  /// The maximum number of marks. Older ones are dropped.
  private static let maxMarks = 36

  /// Identifies the device: 128 random bits.
  let id: [UInt8]
  private let marks: [[UInt8]]
  private let issuedAt: Timestamp

  /// A new device without any mark.
  package init(from random: any RandomSource, at now: Timestamp) {
    self.init(id: random.bytes(Self.idLength), marks: [], issuedAt: now)
  }

  private init(id: [UInt8], marks: [[UInt8]], issuedAt: Timestamp) {
    self.id = id
    self.marks = marks
    self.issuedAt = issuedAt
  }

  /// - Returns: nil if the bytes are not a valid token or it has expired.
  fileprivate init?(bytes: [UInt8], at now: Timestamp) {
    let head = 1 + Self.idLength + 8
    guard bytes.count >= head, bytes[0] == Self.version, (bytes.count - head).isMultiple(of: Self.markLength) else {
      return nil
    }
    let issued = Timestamp(milliseconds: bytes[(1 + Self.idLength)..<head].reduce(Int64(0)) { $0 << 8 | Int64($1) })
    guard now < issued + Self.lifetime else { return nil }
    self.init(
      id: Array(bytes[1...Self.idLength]),
      marks: stride(from: head, to: bytes.count, by: Self.markLength).map { Array(bytes[$0..<($0 + Self.markLength)]) },
      issuedAt: issued)
  }

  fileprivate var bytes: [UInt8] {
    let time = (0..<8).map { UInt8(truncatingIfNeeded: issuedAt.milliseconds >> (56 - 8 * Int64($0))) }
    return [Self.version] + id + time + marks.flatMap(\.self)
  }

  fileprivate func holds(_ mark: [UInt8]) -> Bool { marks.contains { constantTimeEquals($0, mark) } }

  /// - Parameter now: when it is issued; nil keeps the time.
  fileprivate func adding(_ new: [[UInt8]], at now: Timestamp?) -> Self {
    DeviceToken(
      id: id, marks: Array((marks.filter { !new.contains($0) } + new).suffix(Self.maxMarks)), issuedAt: now ?? issuedAt)
  }

  /// The mark of a device that the account trusts under the ID, and that has passed the provider; nil for any provider.
  fileprivate static func mark(_ keys: KeyRing, _ account: String, _ id: String, _ provider: ProviderName?) -> [UInt8] {
    mark(keys, ["device", provider?.rawValue ?? "", account, id])
  }

  /// The mark of a device on which the account has signed in, whether or not it is still trusted.
  fileprivate static func mark(_ keys: KeyRing, _ account: String) -> [UInt8] { mark(keys, ["device of", account]) }

  private static func mark(_ keys: KeyRing, _ texts: [String]) -> [UInt8] {
    Array(keys.counterKey(texts.map { Array($0.utf8) }).prefix(markLength))
  }
}

extension KeyRing {
  private static let deviceOwner = "device"

  /// Parses a device token that a client sent.
  /// - Returns: nil if it is forged, damaged, expired, or from another installation.
  func device(_ text: SecretText?, at now: Timestamp) -> DeviceToken? {
    guard let text = text?.reveal(), text.utf8.count <= 1024, let sealed = Base64URL.decode(text),
      let bytes = openDevice(sealed, for: Self.deviceOwner, at: now)
    else { return nil }
    return DeviceToken(bytes: bytes, at: now)
  }

  /// Whether the account has signed in on the device, so that it may trust it. Only the account itself says whether it
  /// still does (`trust`).
  func mayTrust(_ device: DeviceToken?, _ account: String) -> Bool {
    device?.holds(DeviceToken.mark(self, account)) ?? false
  }

  /// The ID under which the account trusts the device; nil if it does not.
  /// - Parameters:
  ///   - ids: the IDs of the account's trusted devices.
  ///   - provider: only if the device has passed this provider; nil for any.
  func trust(_ device: DeviceToken?, _ account: String, among ids: Set<String>, by provider: ProviderName? = nil)
    -> String?
  {
    guard let device else { return nil }
    return ids.first { device.holds(DeviceToken.mark(self, account, $0, provider)) }
  }

  /// The token of a device that has just passed the providers for the account.
  /// - Parameters:
  ///   - id: the ID under which the account trusts it.
  ///   - now: from when on it is valid for its lifetime; nil does not prolong it.
  package func remember(
    _ device: DeviceToken, _ account: String, as id: String, _ providers: [ProviderName], at now: Timestamp?
  ) throws -> SecretText {
    let marks =
      [DeviceToken.mark(self, account), DeviceToken.mark(self, account, id, nil)]
      + providers.map { DeviceToken.mark(self, account, id, $0) }
    return SecretText(Base64URL.encode(try sealDevice(device.adding(marks, at: now).bytes, for: Self.deviceOwner)))
  }
}
