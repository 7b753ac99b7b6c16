/// Why a program did not do its part. For the operator's log: no text of a person, no code and no secret is in it.
package enum ProgramFault: Error, Sendable, Hashable, CustomStringConvertible {
  /// It could not be started, or the handshake failed.
  case notStarted(String)
  /// It ended while it was asked.
  case ended(String)
  /// It did not answer in time.
  case late(Duration)
  /// Too many calls wait for it already.
  case busy
  /// It is down, and will not be up again in time.
  case down(String)
  /// It was replaced, or the gateway ends.
  case stopped
  /// Whoever asked went away.
  case cancelled
  /// It answered that it could not do it; what it said, redacted.
  case failed(String)
  /// Its answer cannot be read, or says what it may not say.
  case broken(String)
  /// What was to be sent is too long for a line.
  case tooLong

  package var description: String {
    switch self {
    case .notStarted(let why): why
    case .ended(let how): "it \(how) before it answered"
    case .late(let time): "no answer within \(time.shortText)"
    case .busy: "too many calls wait for it"
    case .down(let how): "it is down: it \(how), and is started again soon"
    case .stopped: "it was stopped"
    case .cancelled: "whoever asked went away"
    case .failed(let said): "it failed: \(said)"
    case .broken(let what): what
    case .tooLong: "the call is longer than a line may be"
    }
  }
}

extension Duration {
  /// `2s`, `1500ms`.
  var shortText: String {
    let milliseconds = Int64((self / .milliseconds(1)).rounded())
    return milliseconds % 1000 == 0 ? "\(milliseconds / 1000)s" : "\(milliseconds)ms"
  }
}
