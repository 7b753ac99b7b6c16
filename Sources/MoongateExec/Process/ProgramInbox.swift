import CSpawn
import Dispatch
import Foundation
import MoongateSDK
import Synchronization

/// What is asked of a program's thread by everybody else. The thread takes it all at once, woken by a descriptor.
final class ProgramInbox: Sendable {
  /// One call, on its way to the program.
  struct Call: Sendable {
    let id: Int
    /// With its line end.
    let line: [UInt8]
    let deadline: ContinuousClock.Instant
    let timeout: Duration
    /// What the program may use while the call is open; nil for a call that grants nothing.
    let tools: StepTools?
    let answer: CheckedContinuation<[UInt8], any Error>
  }

  enum Item: Sendable {
    case call(Call)
    case cancel(Int)
    /// A line that answers a request of the program's, of the start of it that asked.
    case reply([UInt8], start: Int)
    /// The settings, ready to be sent at every start from now on.
    case configure(Settings, OneAnswer<Result<Void, ProgramFault>>)
    /// No new request uses it: it ends when it has been idle for a while.
    case retire
    case stop
  }

  /// `configure`'s parameters as JSON: the identifier of the message is another at each start.
  struct Settings: Sendable {
    let line: @Sendable (_ id: Int) throws -> [UInt8]
  }

  private struct State {
    var items: [Item] = []
    /// Why nothing comes in any more; nil while it does.
    var closed: ProgramFault?
    var nextID = 1
    var outstanding = 0
    var isAnother = false
  }

  private let most: Int
  private let state = Mutex(State())
  /// For the thread's poll; -1 where the system has none left: the thread then looks a hundred times a second.
  let descriptor: Int32

  init(most: Int) {
    self.most = most
    descriptor = cspawn_wake_make()
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// A number for a message, never given twice.
  func number() -> Int {
    state.withLock { state in
      defer { state.nextID += 1 }
      return state.nextID
    }
  }

  /// Takes a place among the calls; `left` must follow.
  /// - Throws: `busy` where there is none, `stopped` where the thread is gone.
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

  /// How many calls are under way.
  var outstanding: Int { state.withLock { $0.outstanding } }

  /// - Returns: false where the thread is gone.
  @discardableResult func put(_ item: Item) -> Bool {
    // Only the first of several must wake the thread.
    let (isOpen, isFirst) = state.withLock { state -> (Bool, Bool) in
      guard state.closed == nil else { return (false, false) }
      state.items.append(item)
      return (true, state.items.count == 1)
    }
    if isFirst { cspawn_wake(descriptor) }
    return isOpen
  }

  /// All that came in since.
  func take() -> [Item] {
    cspawn_wake_clear(descriptor)
    return state.withLock { state in
      defer { state.items = [] }
      return state.items
    }
  }

  /// The program says something else of itself than when it was loaded: whoever loads it again needs a new one.
  func isAnother() { state.withLock { $0.isAnother = true } }

  /// Whether the program may be given to somebody else.
  var isSpent: Bool { state.withLock { $0.closed != nil || $0.isAnother } }

  /// Why nothing comes in any more.
  var fault: ProgramFault { state.withLock { $0.closed } ?? .stopped }

  /// Nothing comes in any more.
  /// - Returns: what came in last.
  func shut(_ fault: ProgramFault) -> [Item] {
    state.withLock { state in
      state.closed = fault
      defer { state.items = [] }
      return state.items
    }
  }
}

/// An answer that a thread which may block waits for. Given once; later ones are not looked at.
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

  /// - Returns: nil where there is none in time.
  func wait(atMost time: Duration) -> Value? {
    if semaphore.wait(timeout: .now() + time / .seconds(1)) == .success { semaphore.signal() }
    return value.withLock { $0 }
  }
}
