/// Why a program failed. For the operator's log, so it contains no user text, code or secret.
package enum ProgramFault: Error, Sendable, Hashable, CustomStringConvertible {
  /// The program could not be started, or the handshake failed.
  case notStarted(String)
  /// The program exited during a call.
  case ended(String)
  /// The program did not answer in time.
  case late(Duration)
  /// Too many calls are waiting.
  case busy
  /// The program is down and will not be restarted in time.
  case down(String)
  /// The program was replaced, or the gateway shuts down.
  case stopped
  /// The caller cancelled the call.
  case cancelled
  /// The program reported a failure, with its redacted message.
  case failed(String)
  /// The answer cannot be decoded or is not allowed.
  case broken(String)
  /// The message is too long for a line.
  case tooLong

  /// In the description of an answer whose reason `hello` does not declare; `moongate-provider test` looks for it.
  package static let undeclaredReason = "an undeclared reason"

  package var description: String {
    switch self {
    case .notStarted(let why): why
    case .ended(let how): "it \(how) before it answered"
    case .late(let time): "it did not answer within \(time.shortText)"
    case .busy: "too many calls wait for it"
    case .down(let how): "it is down: it \(how), and is started again soon"
    case .stopped: "it was stopped"
    case .cancelled: "the caller cancelled the call"
    case .failed(let said): "it failed: \(said)"
    case .broken(let what): what
    case .tooLong: "the call is longer than a line may be"
    }
  }
}

extension Duration {
  /// A duration like `2s` or `1500ms`.
  var shortText: String {
    let milliseconds = Int64((self / .milliseconds(1)).rounded())
    return milliseconds % 1000 == 0 ? "\(milliseconds / 1000)s" : "\(milliseconds)ms"
  }
}
