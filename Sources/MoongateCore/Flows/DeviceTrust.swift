import MoongateSDK

/// A device that a sign-in was completed on: the change by which the account trusts it, and its token.
package struct DeviceTrust: Sendable {
  package let change: Change
  package let token: SecretText
}

extension KeyRing {
  /// Whether the account trusts the device, and the device has passed the provider for it; nil for any provider.
  func knows(_ device: DeviceToken?, _ account: Account, by provider: ProviderName?) -> Bool {
    trust(device, account.id, among: account.devices, by: provider) != nil
  }

  /// The token of a device that the account trusts, after it has passed further providers within a session; nil if the
  /// account does not trust it. It is not trusted for longer.
  func extending(_ device: DeviceToken?, for account: Account, passed providers: [ProviderName]) -> SecretText? {
    guard let device, let id = trust(device, account.id, among: account.devices), !providers.isEmpty else { return nil }
    return try? remember(device, account.id, as: id, providers, at: nil)
  }

  /// More than five parameters: what the device is trusted for, and where it got the proof.
  /// Trusts the device for the account.
  /// - Parameters:
  ///   - device: nil for a new device.
  ///   - userAgent: for its owner to recognise it.
  /// - Returns: nil if its token cannot be sealed.
  package func trusting(
    _ device: DeviceToken?, for account: Account, passed providers: [ProviderName], userAgent: String?,
    _ now: Timestamp, _ random: any RandomSource
  ) -> DeviceTrust? {
    let id = trust(device, account.id, among: account.devices) ?? "de_" + Base64URL.encode(random.bytes(12))
    let device = device ?? DeviceToken(from: random, at: now)
    guard let token = try? remember(device, account.id, as: id, providers, at: now) else { return nil }
    let trusted = TrustedDevice(
      id: id, account: account.id, createdAt: now, lastSeenAt: now, userAgent: userAgent.map { String($0.prefix(256)) })
    return DeviceTrust(change: .trustDevice(trusted), token: token)
  }
}
