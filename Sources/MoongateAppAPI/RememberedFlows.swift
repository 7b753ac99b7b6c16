import MoongateCore
import Synchronization

/// Maps calls without a flow id to the flow that an earlier call of the same session began.
///
/// In memory only, and bounded. A forgotten flow is answered with 404 `flow_not_found`, and the app requests another
/// code.
final class RememberedFlows: Sendable {
  enum Key: Hashable, Sendable {
    case verification(session: String)
    case reset(session: String)
    /// An email address that was registered but is not verified yet.
    case address(String)
  }

  struct Entry: Sendable {
    let id: FlowID
    let session: String
    let account: String
    let expiresAt: Timestamp

    func with(session: String) -> Entry { Entry(id: id, session: session, account: account, expiresAt: expiresAt) }
  }

  static let most = 100_000

  private let known = Mutex<[Key: Entry]>([:])

  func put(_ flow: FlowView, under keys: [Key], for session: SessionSnapshot, at now: Timestamp) {
    put(
      Entry(id: flow.id, session: session.session.id, account: session.account.id, expiresAt: flow.expiresAt),
      under: keys, at: now)
  }

  func put(_ entry: Entry, under keys: [Key], at now: Timestamp) {
    known.withLock { known in
      if known.count + keys.count > Self.most {
        known = known.filter { now < $0.value.expiresAt }
        // If there are still too many, the tenth that expires first is removed.
        if known.count + keys.count > Self.most {
          let late = known.values.map(\.expiresAt).sorted()[Self.most / 10]
          known = known.filter { $0.value.expiresAt > late }
        }
      }
      for key in keys { known[key] = entry }
    }
  }

  func find(_ key: Key, at now: Timestamp) -> Entry? {
    known.withLock { $0[key] }.flatMap { now < $0.expiresAt ? $0 : nil }
  }
}
