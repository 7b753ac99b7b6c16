import Foundation
import Synchronization

/// A queue whose reader is a dedicated thread, which blocks while the queue is empty.
package final class BlockingQueue<Element: Sendable>: Sendable {
  private struct State {
    var elements: [Element] = []
    var isOver = false
  }

  private let condition = NSCondition()
  private let state = Mutex(State())

  package init() {}

  package func add(_ element: Element) {
    state.withLock { $0.elements.append(element) }
    wake()
  }

  /// Ends the reader after all elements.
  package func end() {
    state.withLock { $0.isOver = true }
    wake()
  }

  /// Takes all elements in order. Blocks the calling thread while there are none.
  /// - Returns: nil if the queue has ended and is empty.
  package func takeAll() -> [Element]? {
    condition.lock()
    while state.withLock({ $0.elements.isEmpty && !$0.isOver }) { condition.wait() }
    condition.unlock()
    let elements = state.withLock { state -> [Element] in
      defer { state.elements = [] }
      return state.elements
    }
    return elements.isEmpty ? nil : elements
  }

  private func wake() {
    condition.lock()
    condition.signal()
    condition.unlock()
  }
}
