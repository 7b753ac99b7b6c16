import CCurl
import Synchronization

/// Connections to a mail server that nobody uses now.
final class MailSessions: Sendable {
  private let idle = Mutex<[MailSession]>([])

  /// An idle one or a new one; nil where there is no memory.
  func take() -> MailSession? { idle.withLock { $0.popLast() } ?? MailSession() }

  func giveBack(_ session: MailSession) { idle.withLock { $0.append(session) } }
}

/// One of libcurl's handles.
///
/// `@unchecked`: `pointer` is never changed; what it leads to is used by one thread at a time, since whoever took the
/// session out of `MailSessions` is the only one who has it.
final class MailSession: @unchecked Sendable {
  let pointer: OpaquePointer

  init?() {
    guard let pointer = ccurl_session_new() else { return nil }
    self.pointer = pointer
  }

  deinit { ccurl_session_free(pointer) }
}
