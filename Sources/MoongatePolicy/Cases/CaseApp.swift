import Crypto
import Foundation
import MoongateCore
import MoongateSDK

/// A simulated authenticator app (RFC 6238).
///
/// It takes the key that a step shows as `otpauth://…`, and provides the codes that `right()` enters.
struct CaseApp: Sendable {
  private let key: SymmetricKey
  private let digits: Int
  /// In milliseconds.
  private let period: Int64

  /// - Returns: nil if no such key is shown.
  init?(_ shown: [Shown]) {
    let addresses = shown.compactMap {
      if case .qr(let text) = $0, text.hasPrefix("otpauth://totp/") { URLComponents(string: text) } else { nil }
    }
    guard let items = addresses.first?.queryItems else { return nil }
    let said = Dictionary(items.compactMap { item in item.value.map { (item.name, $0) } }) { first, _ in first }
    guard let secret = said["secret"], let bytes = Base32.decode(secret), !bytes.isEmpty,
      said["algorithm"] ?? "SHA1" == "SHA1",
      let digits = Int(said["digits"] ?? "6"), (6...8).contains(digits), let period = Int64(said["period"] ?? "30"),
      (1...3600).contains(period)
    else { return nil }
    key = SymmetricKey(data: bytes)
    self.digits = digits
    self.period = period * 1_000
  }

  /// The code at a time.
  func code(at moment: Timestamp) -> String {
    let counter = withUnsafeBytes(of: UInt64(max(0, moment.milliseconds / period)).bigEndian) { Array($0) }
    let mac = Array(HMAC<Insecure.SHA1>.authenticationCode(for: counter, using: key))
    return OneTimeCode.truncate(mac, digits: digits)
  }
}

extension CaseRun {
  /// The provider of the current step, if an authenticator app answers it: a provider that verifies codes itself.
  func appStep() async throws -> (any FullProvider)? {
    guard let full = await dueProvider() as? any FullProvider,
      !full.descriptor.submitFields.contains(where: \.isRequired),
      full.descriptor.submitFields.contains(where: { $0.name == "code" && $0.kind == .digits })
    else { return nil }
    return full
  }

  /// Begins the step of an app, which may show its key.
  /// - Returns: whether the step is open.
  mutating func openAppStep(_ provider: any FullProvider) async -> Bool {
    guard let flow else { return false }
    if await view()?.step != nil { return true }
    take(
      await gateway.begin(
        flow.id, provider: provider.descriptor.name, fields: fields(of: provider.descriptor, identifiers), by: client))
    if case .view(let view)? = answer, view.step != nil { return true }
    return false
  }

  /// Enters the code of the app, and confirms what is shown afterwards.
  mutating func rightByApp(_ provider: any FullProvider, _ act: PolicyCase.Act) async throws -> String {
    guard await openAppStep(provider), let flow else { return outcomeText }
    let name = provider.descriptor.name
    guard let app else {
      throw fail(act, "this case has no authenticator app: set it up with flow \"\(name)_set\", right()")
    }
    take(await gateway.submit(flow.id, fields: ["code": .text(app.code(at: gateway.clock.now()))], by: client))
    if case .view(let view)? = answer, let step = view.step, step.provider == name, step.fields.isEmpty,
      !step.shown.isEmpty
    {
      take(await gateway.submit(flow.id, fields: [:], by: client))
    }
    return outcomeText
  }
}
