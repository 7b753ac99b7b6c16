import MoongateSDK
import Synchronization

/// What came of a call.
enum Called<Answer: Sendable>: Sendable {
  case answered(Answer)
  case threw(Thrown)
  /// It never ended, which has been told.
  case late
}

/// An error, as far as it can be looked at.
struct Thrown: Sendable {
  let text: String
  let problem: InputProblem?
  let delivery: DeliveryFault?

  init(_ error: any Error) {
    text = "\(error)"
    problem = error as? InputProblem
    delivery = error as? DeliveryFault
  }
}

/// Runs something for so long and no longer.
enum Race {
  /// - Returns: nil where it had not ended by then; it is cancelled and left behind.
  static func run<Answer: Sendable>(for patience: Duration, _ body: @escaping @Sendable () async -> Answer) async
    -> Answer?
  {
    await withCheckedContinuation { continuation in
      let once = Once(continuation)
      let work = Task { once.resume(await body()) }
      let timer = Task {
        try? await Task.sleep(for: patience)
        guard !Task.isCancelled else { return }
        work.cancel()
        once.resume(nil)
      }
      once.onEnd { timer.cancel() }
    }
  }

  /// A continuation that is resumed by the first of its callers.
  private final class Once<Answer: Sendable>: Sendable {
    private struct State {
      var continuation: CheckedContinuation<Answer?, Never>?
      var atEnd: (@Sendable () -> Void)?
    }

    private let state: Mutex<State>

    init(_ continuation: CheckedContinuation<Answer?, Never>) { state = Mutex(State(continuation: continuation)) }

    func resume(_ answer: Answer?) {
      let taken = state.withLock { state in
        defer { state = State() }
        return state
      }
      taken.continuation?.resume(returning: answer)
      taken.atEnd?()
    }

    /// Runs at the end, or now where that has been.
    func onEnd(_ body: @escaping @Sendable () -> Void) {
      let isOver = state.withLock { state in
        if state.continuation == nil { return true }
        state.atEnd = body
        return false
      }
      if isOver { body() }
    }
  }
}
