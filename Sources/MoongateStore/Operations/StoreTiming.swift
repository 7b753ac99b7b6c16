import MoongateCore
import Synchronization

/// The durations of read and write transactions, for `/metrics`, and whether writes fail.
final class StoreTiming: Sendable {
  enum Kind: String, Sendable { case read, write }

  private let reads = Mutex(DurationHistogram())
  private let writes = Mutex(DurationHistogram())
  private let failures = Mutex<UInt64>(0)
  private let isInDoubt = Atomic<Bool>(false)

  /// Whether a write has failed, and no test write has succeeded since. A small write can succeed on a disk that has no
  /// room for a larger one.
  var writesAreInDoubt: Bool {
    get { isInDoubt.load(ordering: .relaxed) }
    set { isInDoubt.store(newValue, ordering: .relaxed) }
  }

  /// Runs the body and records its duration, and whether it failed.
  func record<Value>(_ kind: Kind, _ body: () async throws -> Value) async throws -> Value {
    let start = ContinuousClock.now
    do {
      let value = try await traced("store \(kind.rawValue)", .client) { try await body() }
      record(kind, since: start)
      return value
    } catch {
      // A refusal by the body is not a failure of the store.
      if error is StoreFault {
        failures.withLock { $0 += 1 }
        if kind == .write { isInDoubt.store(true, ordering: .relaxed) }
      }
      record(kind, since: start)
      throw error
    }
  }

  private func record(_ kind: Kind, since start: ContinuousClock.Instant) {
    let nanoseconds = (ContinuousClock.now - start).wholeNanoseconds
    switch kind {
    case .read: reads.withLock { $0.record(nanoseconds: nanoseconds) }
    case .write: writes.withLock { $0.record(nanoseconds: nanoseconds) }
    }
  }

  var families: [MetricFamily] {
    [
      MetricFamily(
        .storeTransactionSeconds,
        reads.withLock { $0 }.samples([("kind", "read")]) + writes.withLock { $0 }.samples([("kind", "write")])),
      MetricFamily(.storeFaultsTotal, failures.withLock { $0 }),
    ]
  }
}
