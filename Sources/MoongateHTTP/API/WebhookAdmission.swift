import MoongateCore
import MoongateSDK
import Synchronization

/// Who calls the webhook of a provider.
struct WebhookCaller: Hashable {
  let provider: ProviderName
  /// `ClientAddress.countingKey`.
  let address: [UInt8]
}

/// Bounds calls of webhooks, so that calls without a valid signature leave room for the vendor's.
///
/// Attack: unsigned calls from many addresses use up a common allowance, and the vendor's calls are refused meanwhile.
/// Therefore a call is charged only once the provider has refused it, and to its own address. Calls that run at the
/// same time are bounded instead, with a reserve for addresses from which the provider has accepted a call before.
final class WebhookAdmission: Sendable {
  /// The permit of one running call.
  struct Permit {
    fileprivate let caller: WebhookCaller
    fileprivate let isKnown: Bool
  }

  /// How many calls of a provider run at the same time: from unknown addresses, and from known ones.
  static let mostUnknown = 16
  static let mostKnown = 64
  /// How many of the unknown ones may have the same address.
  static let mostPerAddress = 4

  /// How long an address is known after its last accepted call.
  private static let memory: Duration = .seconds(86_400)
  private static let mostRemembered = 1_000

  private struct State {
    /// The running calls from unknown addresses, and from known ones.
    var unknown: [ProviderName: [[UInt8]: Int]] = [:]
    var known: [ProviderName: Int] = [:]
    /// The last accepted call of each address.
    var accepted: [WebhookCaller: Timestamp] = [:]
  }

  private let state = Mutex(State())
  private let refusals = EventAllowances(most: 100, perSecond: 20)

  /// How long the address has to wait because the provider has refused its calls.
  func wait(_ caller: WebhookCaller, at now: Timestamp) -> Duration? { refusals.wait(caller.address, at: now) }

  /// Begins a call.
  /// - Returns: nil if too many are running.
  func begin(_ caller: WebhookCaller, at now: Timestamp) -> Permit? {
    state.withLock { state in
      if let last = state.accepted[caller], now - last < Self.memory {
        guard state.known[caller.provider, default: 0] < Self.mostKnown else { return nil }
        state.known[caller.provider, default: 0] += 1
        return Permit(caller: caller, isKnown: true)
      }
      let running = state.unknown[caller.provider] ?? [:]
      guard running.values.reduce(0, +) < Self.mostUnknown, running[caller.address, default: 0] < Self.mostPerAddress
      else { return nil }
      state.unknown[caller.provider, default: [:]][caller.address, default: 0] += 1
      return Permit(caller: caller, isKnown: false)
    }
  }

  /// Ends a call, and charges a refused one.
  func end(_ permit: Permit, isAccepted: Bool, at now: Timestamp) {
    let caller = permit.caller
    state.withLock { state in
      if permit.isKnown {
        state.known[caller.provider, default: 1] -= 1
      } else {
        let left = state.unknown[caller.provider, default: [:]][caller.address, default: 1] - 1
        state.unknown[caller.provider]?[caller.address] = left > 0 ? left : nil
      }
      guard isAccepted else { return }
      if state.accepted[caller] == nil, state.accepted.count >= Self.mostRemembered,
        let oldest = state.accepted.min(by: { $0.value < $1.value })?.key
      {
        state.accepted[oldest] = nil
      }
      state.accepted[caller] = now
    }
    if !isAccepted { _ = refusals.take(1, from: caller.address, at: now) }
  }
}
