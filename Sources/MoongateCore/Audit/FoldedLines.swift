import Synchronization

/// Folds log lines about the same thing: the first one is written, those of the following minute are counted.
///
/// Attack: what fails for some requests fails for as many as somebody sends. A line for each would fill the disk and
/// hide everything else.
package final class FoldedLines<Key: Hashable & Sendable, Line: Sendable>: Sendable {
  private struct Window {
    let until: Timestamp
    /// The last line that was not written, and how many of them there were.
    var last: Line?
    var count = 0
  }

  private let window: Duration
  private let most: Int
  private let windows = Mutex<[Key: Window]>([:])

  /// - Parameter most: keys at a time; lines of others are not written.
  package init(window: Duration = .seconds(60), most: Int = 1_000) {
    self.window = window
    self.most = most
  }

  /// - Returns: how many lines were not written since the last one, where this one is to be written; nil where it is
  ///   counted.
  package func admit(_ key: Key, _ line: Line, at now: Timestamp) -> Int? {
    windows.withLock { windows in
      if var open = windows[key], now < open.until {
        open.last = line
        open.count += 1
        windows[key] = open
        return nil
      }
      guard windows.count < most || windows[key] != nil else { return nil }
      let unsaid = windows[key]?.count ?? 0
      windows[key] = Window(until: now + window)
      return unsaid
    }
  }

  /// Takes what was counted in windows that are over, and forgets them.
  package func takeOver(at now: Timestamp) -> [(last: Line, count: Int)] {
    windows.withLock { windows in
      let over = windows.filter { $0.value.until <= now }
      for key in over.keys { windows[key] = nil }
      return over.values.compactMap { window in window.last.map { ($0, window.count) } }
    }
  }
}
