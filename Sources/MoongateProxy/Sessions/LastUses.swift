import Logging
import MoongateCore

/// The last uses of sessions and access tokens on one event loop that must be stored.
struct LastUses: Sendable {
  let sessions: [TokenHash: SessionUse]
  let tokens: [TokenUse]

  var isEmpty: Bool { sessions.isEmpty && tokens.isEmpty }

  /// Stores them. If one part fails, the other is still stored.
  /// - Parameters:
  ///   - directory: stores the uses of tokens; nil if all access tokens are invalid.
  ///   - logger: where failures are logged; nil: nowhere.
  func store(in store: any SessionStore, _ directory: AccessTokenDirectory?, logger: Logger?) async {
    if !sessions.isEmpty {
      do throws(StoreFault) {
        try await store.touch(sessions)
      } catch {
        logger?.warning("the last activity of sessions cannot be written", metadata: ["fault": "\(error)"])
      }
    }
    if !tokens.isEmpty {
      do {
        try await directory?.record(tokens)
      } catch {
        logger?.warning("the last use of tokens cannot be written", metadata: ["fault": "\(error)"])
      }
    }
  }
}
