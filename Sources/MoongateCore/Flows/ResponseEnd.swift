import Synchronization

/// The moment at which the response of a request has been written. Work in the background begins then.
///
/// Attack: a message that is delivered while the response is made takes processor time from it, so the response time
/// tells whether anybody gets a message.
package final class ResponseEnd: Sendable {
  private enum State {
    case ahead([CheckedContinuation<Void, Never>])
    case reached
  }

  /// The end of the response that the current task makes; nil outside of a request.
  @TaskLocal package static var current: ResponseEnd?

  private let state = Mutex(State.ahead([]))

  package init() {}

  /// Call once the response has been written, or will never be.
  package func reach() {
    let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
      guard case .ahead(let waiting) = state else { return [] }
      state = .reached
      return waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Returns once the end is reached.
  func wait() async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isReached = state.withLock { state in
        guard case .ahead(let waiting) = state else { return true }
        state = .ahead(waiting + [continuation])
        return false
      }
      if isReached { continuation.resume() }
    }
  }
}
