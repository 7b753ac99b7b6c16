import Foundation

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

    func start() {
      let thread = Thread(block: body)
      thread.name = name
      thread.stackSize = stackSize
      thread.start()
    }
  }

  private let queue = BlockingQueue<Order>()

  init() {
    let thread = Thread { [queue] in
      while let orders = queue.takeAll() {
        for order in orders { order.start() }
      }
    }
    thread.name = "exec starter"
    thread.start()
  }

  deinit { queue.end() }

  /// Starts a thread asynchronously.
  func start(_ name: String, stackSize: Int, _ body: @escaping @Sendable () -> Void) {
    queue.add(Order(name: name, stackSize: stackSize, body: body))
  }
}
