import Logging
import MoongateCore
import MoongateSDK
import Synchronization

/// A message transport with a bounded queue and a circuit breaker.
final class GuardedMessenger: Messenger {
  private typealias Waiter = CheckedContinuation<Bool, Never>

  private struct State {
    var circuit = CircuitBreaker()
    var queue: SendQueue<Waiter>
  }

  private let transport: any MessageTransport
  private let clock: any GatewayClock
  private let logger: Logger
  private let state: Mutex<State>

  init(_ transport: any MessageTransport, clock: any GatewayClock, logger: Logger) {
    self.transport = transport
    self.clock = clock
    self.logger = logger
    state = Mutex(State(queue: SendQueue(most: transport.most)))
  }

  /// The site and the state of its circuit: 0 closed (messages are sent), 1 half open (one test message is sent), 2
  /// open (no message is sent).
  var breaker: (site: String, state: Int) {
    let state =
      switch state.withLock({ $0.circuit.state }) {
      case .closed: 0
      case .halfOpen: 1
      case .open: 2
      }
    return (transport.site, state)
  }

  func send(_ message: Message) async throws(DeliveryFault) {
    // Check before queueing, so that no request waits for a site that is known to be down.
    if case .open(let until) = state.withLock({ $0.circuit.state }), clock.now() < until { throw closed(until) }
    guard await turn() else {
      throw DeliveryFault(reason: "\(transport.site) is too slow: too many messages wait for it")
    }
    defer { leave() }
    if case .refused(let until) = state.withLock({ [now = clock.now()] in $0.circuit.admit(at: now) }) {
      throw closed(until)
    }
    do throws(TransportError) {
      try await transport.send(message)
      settle(isFailure: false)
    } catch {
      settle(isFailure: !error.isOfMessage)
      throw DeliveryFault(reason: "\(transport.site): \(error.reason)")
    }
  }

  /// Waits for a permit.
  private func turn() async -> Bool {
    await withCheckedContinuation { waiter in
      let now = clock.now()
      switch state.withLock({ $0.queue.enter(waiter, at: now) }) {
      case .goes: waiter.resume(returning: true)
      case .full: waiter.resume(returning: false)
      case .waits: break
      }
    }
  }

  private func leave() {
    let now = clock.now()
    let (next, late) = state.withLock { $0.queue.leave(at: now) }
    for waiter in late { waiter.resume(returning: false) }
    next?.resume(returning: true)
  }

  private func settle(isFailure: Bool) {
    let now = clock.now()
    let (before, after) = state.withLock { state in
      let before = state.circuit.state
      if isFailure { state.circuit.failed(at: now) } else { state.circuit.succeeded() }
      return (before, state.circuit.state)
    }
    switch (before, after) {
    case (.closed, .open): logger.error("messages cannot be sent", metadata: ["site": "\(transport.site)"])
    case (.halfOpen, .closed): logger.notice("messages are sent again", metadata: ["site": "\(transport.site)"])
    default: break
    }
  }

  private func closed(_ until: Timestamp?) -> DeliveryFault {
    DeliveryFault(
      reason: "\(transport.site) failed repeatedly; the next attempt is \(until.map { "at \($0.text)" } ?? "now")"
    )
  }
}
