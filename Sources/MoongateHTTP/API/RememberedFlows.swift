import MoongateCore
import Synchronization

/// Which flow a call without an id means: the one that the call before it began in the same session.
///
/// In memory only, and bounded. What is forgotten answers 404 `flow_not_found`, and the app asks for another code.
final class RememberedFlows: Sendable {
  enum Key: Hashable, Sendable {
    case verification(session: String)
    case reset(session: String)
    /// An address that was registered and not proved yet.
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
        // Still too many: those that end first make room, a tenth at a time.
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
