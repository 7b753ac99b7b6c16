import CoreMetrics
import MoongateCore
import Synchronization

/// The backend of swift-metrics, for `GET /metrics`. It stores the metrics of libraries and of slower parts of the
/// gateway.
///
/// The data path uses `EventLoopMetrics` instead.
package final class MetricRegistry: MetricsFactory {
  /// The limit on series. Attack (or mistake): labels chosen by a client would create an unbounded number of series.
  private static let maxSeries = 5000

  private struct Key: Hashable {
    let label: String
    let dimensions: [[String]]
  }

  private enum Series {
    case counter(Number)
    case gauge(Number)
    case timer(Times)
  }

  private let series = Mutex<[Key: Series]>([:])
  private let beyond = Number()

  /// Help texts by name. Other metrics get a generic text.
  private let help: [String: String]

  package init(help: [String: String] = [:]) { self.help = help }

  /// All metrics, sorted by name.
  package var families: [MetricFamily] {
    let known = series.withLock { $0 }
    return Dictionary(grouping: known) { $0.key.label }.sorted { $0.key < $1.key }.map { label, series in
      let sorted = series.sorted {
        $0.key.dimensions.lexicographicallyPrecedes($1.key.dimensions) { $0.lexicographicallyPrecedes($1) }
      }
      var kind = MetricFamily.Kind.counter
      var samples: [MetricFamily.Sample] = []
      for (key, value) in sorted {
        let labels = key.dimensions.map { (name: $0[0], value: $0[1]) }
        switch value {
        case .counter(let number): samples.append(MetricFamily.Sample(labels, number.value))
        case .gauge(let number):
          kind = .gauge
          samples.append(MetricFamily.Sample(labels, number.value))
        case .timer(let times):
          kind = .histogram
          samples += times.histogram.samples(labels)
        }
      }
      return MetricFamily(Self.name(label), kind, help[label] ?? "Counted by a library under \(label).", samples)
    }
  }

  // MARK: MetricsFactory

  package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    number(label, dimensions) { .counter($0) }
  }

  package func makeFloatingPointCounter(label: String, dimensions: [(String, String)])
    -> any FloatingPointCounterHandler
  {
    number(label, dimensions) { .counter($0) }
  }

  package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
    number(label, dimensions) { .gauge($0) }
  }

  package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
    number(label, dimensions) { .gauge($0) }
  }

  package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    let key = Self.key(label, dimensions)
    return series.withLock { series in
      if case .timer(let known)? = series[key] { return known }
      let made = Times()
      if series.count < Self.maxSeries { series[key] = .timer(made) }
      return made
    }
  }

  // Values are kept, because a recreated counter must not restart at zero.
  package func destroyCounter(_ handler: any CounterHandler) {}
  package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {}
  package func destroyMeter(_ handler: any MeterHandler) {}
  package func destroyRecorder(_ handler: any RecorderHandler) {}
  package func destroyTimer(_ handler: any TimerHandler) {}

  private func number(_ label: String, _ dimensions: [(String, String)], _ make: (Number) -> Series) -> Number {
    let key = Self.key(label, dimensions)
    return series.withLock { series in
      switch series[key] {
      case .counter(let known)?, .gauge(let known)?: return known
      case .timer?: return beyond
      case nil: break
      }
      guard series.count < Self.maxSeries else { return beyond }
      let made = Number()
      series[key] = make(made)
      return made
    }
  }

  private static func key(_ label: String, _ dimensions: [(String, String)]) -> Key {
    Key(label: label, dimensions: dimensions.sorted { $0.0 < $1.0 }.map { [name($0.0), $0.1] })
  }

  /// A valid Prometheus name: `[a-zA-Z_][a-zA-Z0-9_]*`.
  private static func name(_ label: String) -> String {
    let clean = String(
      label.unicodeScalars.map {
        $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0)) ? Character($0) : "_"
      })
    return clean.first.map { $0.isNumber ? "_" + clean : clean } ?? "_"
  }
}

/// The value of a counter or gauge.
private final class Number: CounterHandler, FloatingPointCounterHandler, MeterHandler, RecorderHandler {
  private let bits = Atomic<UInt64>(0)

  var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

  func increment(by amount: Int64) { change { $0 + Double(amount) } }
  func increment(by amount: Double) { change { $0 + amount } }
  func decrement(by amount: Double) { change { $0 - amount } }
  func set(_ value: Int64) { change { _ in Double(value) } }
  func set(_ value: Double) { change { _ in value } }
  func record(_ value: Int64) { set(value) }
  func record(_ value: Double) { set(value) }
  func reset() { set(0 as Double) }

  private func change(_ body: (Double) -> Double) {
    var known = bits.load(ordering: .relaxed)
    while true {
      let result = bits.compareExchange(
        expected: known, desired: body(Double(bitPattern: known)).bitPattern, ordering: .relaxed)
      if result.exchanged { return }
      known = result.original
    }
  }
}

/// The histogram of a timer.
private final class Times: TimerHandler {
  private let state = Mutex(DurationHistogram())

  var histogram: DurationHistogram { state.withLock { $0 } }

  func recordNanoseconds(_ duration: Int64) { state.withLock { $0.record(nanoseconds: duration) } }
}
