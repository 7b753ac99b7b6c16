import Synchronization

/// Folds repeated log lines: the first line of a key is written, and those of the following minute are counted.
///
/// Attack: an error that some requests cause can be caused as often as someone sends them. A line for each would fill
/// the disk and hide everything else.
package final class FoldedLines<Key: Hashable & Sendable, Line: Sendable>: Sendable {
  private struct Window {
    let until: Timestamp
    /// The last line that was not written, and the number of such lines.
    var last: Line?
    var count = 0
  }

  private let window: Duration
  private let most: Int
  private let windows = Mutex<[Key: Window]>([:])

  /// - Parameter most: the maximum number of keys at a time. Lines of further keys are dropped.
  package init(window: Duration = .seconds(60), most: Int = 1_000) {
    self.window = window
    self.most = most
  }

  /// - Returns: the number of lines suppressed since the last written one, if this line must be written; nil if it was
  ///   only counted.
  package func admit(_ key: Key, _ line: Line, at now: Timestamp) -> Int? {
    windows.withLock { windows in
      if var open = windows[key], now < open.until {
        open.last = line
        open.count += 1
        windows[key] = open
        return nil
      }
      guard windows.count < most || windows[key] != nil else { return nil }
      let suppressed = windows[key]?.count ?? 0
      windows[key] = Window(until: now + window)
      return suppressed
    }
  }

  /// Returns and removes the counts of windows that are over.
  package func takeOver(at now: Timestamp) -> [(last: Line, count: Int)] {
    windows.withLock { windows in
      let over = windows.filter { $0.value.until <= now }
      for key in over.keys { windows[key] = nil }
      return over.values.compactMap { window in window.last.map { ($0, window.count) } }
    }
  }
}
