import Foundation
import Synchronization

/// Starts threads from a dedicated thread, so that they inherit the priority of the thread that created the starter.
///
/// On Linux, a new thread or process inherits the nice value of its creator and cannot lower it without privileges.
/// Configurations are loaded on a thread of the lowest priority. A program started from there would keep that priority
/// while users wait for its answers.
final class ThreadStarter: Sendable {
  private struct Order: Sendable {
    let name: String
    let stackSize: Int
    let body: @Sendable () -> Void
  }

  private final class Queue: Sendable {
    private struct State {
      var orders: [Order] = []
      var isOver = false
    }

    private let condition = NSCondition()
    private let state = Mutex(State())

    func add(_ order: Order) {
      state.withLock { $0.orders.append(order) }
      wake()
    }

    func end() {
      state.withLock { $0.isOver = true }
      wake()
    }

    private func wake() {
      condition.lock()
      condition.signal()
      condition.unlock()
    }

    func work() {
      while true {
        condition.lock()
        while state.withLock({ $0.orders.isEmpty && !$0.isOver }) { condition.wait() }
        condition.unlock()
        let (orders, isOver) = state.withLock { state -> ([Order], Bool) in
          defer { state.orders = [] }
          return (state.orders, state.isOver)
        }
        for order in orders {
          let thread = Thread(block: order.body)
          thread.name = order.name
          thread.stackSize = order.stackSize
          thread.start()
        }
        if isOver { return }
      }
    }
  }

  private let queue = Queue()

  init() {
    let thread = Thread { [queue] in queue.work() }
    thread.name = "exec starter"
    thread.start()
  }

  deinit { queue.end() }

  /// Starts a thread asynchronously.
  func start(_ name: String, stackSize: Int, _ body: @escaping @Sendable () -> Void) {
    queue.add(Order(name: name, stackSize: stackSize, body: body))
  }
}
