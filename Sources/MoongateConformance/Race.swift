import MoongateSDK
import Synchronization

/// The result of a call.
enum Called<Answer: Sendable>: Sendable {
  case answered(Answer)
  case threw(InspectedError)
  /// The call did not end, which is reported.
  case late
}

/// The inspectable parts of an error.
struct InspectedError: Sendable {
  let text: String
  let problem: InputProblem?
  let delivery: DeliveryFault?

  init(_ error: any Error) {
    text = "\(error)"
    problem = error as? InputProblem
    delivery = error as? DeliveryFault
  }
}

/// Runs an operation with a time limit.
enum Race {
  /// - Returns: nil after the time limit. The operation is then cancelled and abandoned.
  static func run<Answer: Sendable>(for timeout: Duration, _ body: @escaping @Sendable () async -> Answer) async
    -> Answer?
  {
    await withCheckedContinuation { continuation in
      let once = Once(continuation)
      let work = Task { once.resume(await body()) }
      let timer = Task {
        try? await Task.sleep(for: timeout)
        guard !Task.isCancelled else { return }
        work.cancel()
        once.resume(nil)
      }
      once.onEnd { timer.cancel() }
    }
  }

  /// A continuation that is resumed by its first caller.
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

    /// Runs the closure at the end, or at once if it has already ended.
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
