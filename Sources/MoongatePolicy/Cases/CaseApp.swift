import Crypto
import Foundation
import MoongateCore
import MoongateSDK

/// The authenticator app of the person in a case: it takes the key that a step shows as `otpauth://…`, and knows the
/// code of every moment (RFC 6238), so that `right()` has something to enter.
struct CaseApp: Sendable {
  private let key: SymmetricKey
  private let digits: Int
  /// Milliseconds of one code.
  private let period: Int64

  /// - Returns: nil where nothing that is shown is such a key.
  init?(_ shown: [Shown]) {
    let addresses = shown.compactMap {
      if case .qr(let text) = $0, text.hasPrefix("otpauth://totp/") { URLComponents(string: text) } else { nil }
    }
    guard let items = addresses.first?.queryItems else { return nil }
    let said = Dictionary(items.compactMap { item in item.value.map { (item.name, $0) } }) { first, _ in first }
    guard let secret = said["secret"], let bytes = Self.bytes(secret), said["algorithm"] ?? "SHA1" == "SHA1",
      let digits = Int(said["digits"] ?? "6"), (6...8).contains(digits), let period = Int64(said["period"] ?? "30"),
      (1...3600).contains(period)
    else { return nil }
    key = SymmetricKey(data: bytes)
    self.digits = digits
    self.period = period * 1_000
  }

  /// What it shows at a moment.
  func code(at moment: Timestamp) -> String {
    let counter = withUnsafeBytes(of: UInt64(max(0, moment.milliseconds / period)).bigEndian) { Array($0) }
    let mac = Array(HMAC<Insecure.SHA1>.authenticationCode(for: counter, using: key))
    // RFC 4226 section 5.3.
    let offset = Int(mac[mac.count - 1] & 0x0f)
    let number = mac[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7fff_ffff
    let text = String(number)
    return String((String(repeating: "0", count: digits) + text).suffix(digits))
  }

  /// RFC 4648 section 6, without its padding.
  private static func bytes(_ text: String) -> [UInt8]? {
    var (bits, count, bytes) = (0, 0, [UInt8]())
    for letter in text.utf8 where letter != UInt8(ascii: "=") {
      switch letter {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): bits = bits << 5 | Int(letter - 65)
      case UInt8(ascii: "2")...UInt8(ascii: "7"): bits = bits << 5 | Int(letter - 50 + 26)
      default: return nil
      }
      count += 5
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> count))
        bits &= (1 << count) - 1
      }
    }
    return bytes.isEmpty ? nil : bytes
  }
}

extension CaseRun {
  /// The step that is open or due, where an authenticator app answers it: a provider that judges codes of its own.
  func appStep() async throws -> (any FullProvider)? {
    guard let full = await dueProvider() as? any FullProvider,
      !full.descriptor.submitFields.contains(where: \.isRequired),
      full.descriptor.submitFields.contains(where: { $0.name == "code" && $0.kind == .digits })
    else { return nil }
    return full
  }

  /// Opens the step of an app, so that it can be answered, or shows its key.
  /// - Returns: whether it is open.
  mutating func openAppStep(_ provider: any FullProvider) async -> Bool {
    guard let flow else { return false }
    if await view()?.step != nil { return true }
    take(
      await gateway.begin(
        flow.id, provider: provider.descriptor.name, fields: fields(of: provider.descriptor, identifiers), by: client))
    if case .view(let view)? = answer, view.step != nil { return true }
    return false
  }

  /// Enters what the app shows, and says that what is shown after that was seen.
  mutating func rightByApp(_ provider: any FullProvider, _ act: PolicyCase.Act) async throws -> String {
    guard await openAppStep(provider), let flow else { return told }
    let name = provider.descriptor.name
    guard let app else {
      throw fail(act, "there is no authenticator app in this case: it is set up by flow \"\(name)_set\", right()")
    }
    take(await gateway.submit(flow.id, fields: ["code": .text(app.code(at: gateway.clock.now()))], by: client))
    if case .view(let view)? = answer, let step = view.step, step.provider == name, step.fields.isEmpty,
      !step.shown.isEmpty
    {
      take(await gateway.submit(flow.id, fields: [:], by: client))
    }
    return told
  }
}
