import CSpawn
import Dispatch
import Foundation
import MoongateSDK
import Synchronization

/// The queue of commands for a program's thread. A descriptor wakes the thread, which then takes all items at once.
final class ProgramInbox: Sendable {
  /// One call to the program.
  struct Call: Sendable {
    let id: Int
    /// The encoded line with its end.
    let line: [UInt8]
    let deadline: ContinuousClock.Instant
    let timeout: Duration
    /// The services that the program can use during the call; nil for none.
    let tools: StepTools?
    let answer: CheckedContinuation<[UInt8], any Error>
  }

  enum Item: Sendable {
    case call(Call)
    case cancel(Int)
    /// The answer to a request of the program, with the number of the start that sent the request.
    case reply([UInt8], start: Int)
    /// The settings, which are sent at every start from now on.
    case configure(Settings, OneAnswer<Result<Void, ProgramFault>>)
    /// No new request uses the program. It is stopped after being idle for a while.
    case retire
    case stop
  }

  /// The parameters of `configure` as JSON. The message id differs between starts.
  struct Settings: Sendable {
    let line: @Sendable (_ id: Int) throws -> [UInt8]
  }

  private struct State {
    var items: [Item] = []
    /// Why the inbox is closed; nil while it is open.
    var closed: ProgramFault?
    var nextID = 1
    var outstanding = 0
    var introductionHasChanged = false
  }

  private let most: Int
  private let state = Mutex(State())
  /// The descriptor for the thread's poll; -1 if the system has none left, so that the thread polls a hundred times per
  /// second.
  let descriptor: Int32

  init(most: Int) {
    self.most = most
    descriptor = cspawn_wake_make()
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// A message id that was never used before.
  func number() -> Int {
    state.withLock { state in
      defer { state.nextID += 1 }
      return state.nextID
    }
  }

  /// Reserves a slot for a call. `left` must follow.
  /// - Throws: `busy` if there is no free slot, `stopped` if the thread has ended.
  func enter() throws(ProgramFault) {
    let fault: ProgramFault? = state.withLock { state in
      if let closed = state.closed { return closed }
      if state.outstanding >= most { return .busy }
      state.outstanding += 1
      return nil
    }
    if let fault { throw fault }
  }

  func left() { state.withLock { $0.outstanding -= 1 } }

  /// The number of open calls.
  var outstanding: Int { state.withLock { $0.outstanding } }

  /// - Returns: false if the thread has ended.
  @discardableResult func put(_ item: Item) -> Bool {
    // Only the first of several items must wake the thread.
    let (isOpen, isFirst) = state.withLock { state -> (Bool, Bool) in
      guard state.closed == nil else { return (false, false) }
      state.items.append(item)
      return (true, state.items.count == 1)
    }
    if isFirst { cspawn_wake(descriptor) }
    return isOpen
  }

  /// All items since the last call.
  func take() -> [Item] {
    cspawn_wake_clear(descriptor)
    return state.withLock { state in
      defer { state.items = [] }
      return state.items
    }
  }

  /// Records that the program's introduction differs from when it was loaded. The next load needs a new program.
  func markIntroductionChanged() { state.withLock { $0.introductionHasChanged = true } }

  /// Whether the program must not be used by another generation.
  var isSpent: Bool { state.withLock { $0.closed != nil || $0.introductionHasChanged } }

  /// Why the inbox is closed.
  var fault: ProgramFault { state.withLock { $0.closed } ?? .stopped }

  /// Closes the inbox.
  /// - Returns: the remaining items.
  func shut(_ fault: ProgramFault) -> [Item] {
    state.withLock { state in
      state.closed = fault
      defer { state.items = [] }
      return state.items
    }
  }
}

/// A value that a blocking thread waits for. It is set once; later values are ignored.
final class OneAnswer<Value: Sendable>: Sendable {
  private let value = Mutex<Value?>(nil)
  private let semaphore = DispatchSemaphore(value: 0)

  func give(_ answer: Value) {
    let isFirst = value.withLock { value in
      guard value == nil else { return false }
      value = answer
      return true
    }
    if isFirst { semaphore.signal() }
  }

  /// - Returns: nil if there is no value in time.
  func wait(atMost time: Duration) -> Value? {
    if semaphore.wait(timeout: .now() + time / .seconds(1)) == .success { semaphore.signal() }
    return value.withLock { $0 }
  }
}
