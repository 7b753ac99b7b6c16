import Logging
import Synchronization

/// Records every log line at every level, so that a test can check what must not be logged.
package final class CapturedLog: Sendable {
  private let state = Mutex<[String]>([])

  package init() {}

  /// The level, message and metadata of each line.
  package var lines: [String] { state.withLock { $0 } }

  /// A logger that writes to this log.
  package var logger: Logger { Logger(label: "test") { _ in Handler(log: self) } }

  private struct Handler: LogHandler {
    let log: CapturedLog
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level = .trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      let all = metadata.merging(event.metadata ?? [:]) { _, new in new }
      log.state.withLock {
        $0.append(
          "\(event.level) \(event.message) \(all.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " "))"
        )
      }
    }
  }
}
