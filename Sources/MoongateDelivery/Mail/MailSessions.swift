import CCurl
import Synchronization

/// The idle connections to a mail server.
final class MailSessions: Sendable {
  private let idle = Mutex<[MailSession]>([])

  /// Takes an idle session or a new one; nil if memory is exhausted.
  func take() -> MailSession? { idle.withLock { $0.popLast() } ?? MailSession() }

  func giveBack(_ session: MailSession) { idle.withLock { $0.append(session) } }
}

/// A libcurl handle.
///
/// `@unchecked`: `pointer` never changes. Its target is used only by the thread that took the session
/// from `MailSessions`.
final class MailSession: @unchecked Sendable {
  let pointer: OpaquePointer

  init?() {
    guard let pointer = ccurl_session_new() else { return nil }
    self.pointer = pointer
  }

  deinit { ccurl_session_free(pointer) }
}
