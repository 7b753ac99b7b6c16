import Logging
import Synchronization

/// Something that clients or services can cause as often as they like, and that operators must see in the log.
package protocol FoldedEntry: Sendable {
  associatedtype Key: Hashable & Sendable

  /// Entries with the same key are folded into one line.
  var key: Key { get }
  var level: Logger.Level { get }
  /// The message of the line for the first entry.
  var message: Logger.Message { get }
  /// The message of the line that counts the entries after it.
  var messageOfMore: Logger.Message { get }
  /// What both lines tell about the entry.
  var metadata: Logger.Metadata { get }
}

extension FoldedEntry where Self: Hashable { package var key: Self { self } }

/// Writes the first log line of a key, and counts those of the following minute.
///
/// Attack: an error that some requests cause can be caused as often as someone sends them. A line for each would fill
/// the disk and hide everything else.
package final class FoldedLog<Entry: FoldedEntry>: Sendable {
  private struct Window {
    let until: Timestamp
    /// The last entry that was not written, and the number of such entries.
    var last: Entry?
    var count = 0
  }

  private let logger: Logger
  private let clock: any GatewayClock
  private let window: Duration
  private let maxKeys: Int
  private let windows = Mutex<[Entry.Key: Window]>([:])

  /// - Parameter maxKeys: the maximum number of keys at a time. Entries with further keys are dropped.
  package init(logger: Logger, clock: any GatewayClock, window: Duration = .seconds(60), maxKeys: Int = 1_000) {
    self.logger = logger
    self.clock = clock
    self.window = window
    self.maxKeys = maxKeys
  }

  /// Writes the entry, or counts it if one with its key was written in the last minute.
  /// - Parameter details: what only the line of this entry tells.
  package func report(_ entry: Entry, _ details: @autoclosure () -> Logger.Metadata = [:]) {
    guard let suppressed = admit(entry, at: clock.now()) else { return }
    write(entry, entry.message, suppressed: suppressed, details())
  }

  /// Writes and resets the counts of windows that are over.
  package func logSuppressed() {
    for (entry, count) in takeOver(at: clock.now()) { write(entry, entry.messageOfMore, suppressed: count, [:]) }
  }

  /// - Returns: the number of entries suppressed since the last written one, if this one must be written; nil if it was
  ///   only counted.
  private func admit(_ entry: Entry, at now: Timestamp) -> Int? {
    let key = entry.key
    return windows.withLock { windows in
      if var open = windows[key], now < open.until {
        open.last = entry
        open.count += 1
        windows[key] = open
        return nil
      }
      guard windows.count < maxKeys || windows[key] != nil else { return nil }
      let suppressed = windows[key]?.count ?? 0
      windows[key] = Window(until: now + window)
      return suppressed
    }
  }

  private func takeOver(at now: Timestamp) -> [(last: Entry, count: Int)] {
    windows.withLock { windows in
      let over = windows.filter { $0.value.until <= now }
      for key in over.keys { windows[key] = nil }
      return over.values.compactMap { window in window.last.map { ($0, window.count) } }
    }
  }

  private func write(_ entry: Entry, _ message: Logger.Message, suppressed: Int, _ details: Logger.Metadata) {
    var metadata = entry.metadata.merging(details) { _, new in new }
    if suppressed > 0 { metadata["suppressed"] = "\(suppressed)" }
    logger.log(level: entry.level, message, metadata: metadata)
  }
}
