import MoongateCore

/// The course of a simulation: cumulative counts over time, and locks.
package struct SimulationTimeline: Sendable, Equatable {
  /// The cumulative counts at one time.
  package struct Point: Sendable, Equatable {
    /// Virtual seconds since the attack began.
    package let seconds: Double
    package let guesses: Int
    package let messages: Int
  }

  /// A lock of the owner.
  package struct Lock: Sendable, Equatable {
    package let from: Double
    package let to: Double
  }

  /// The maximum number of columns of a chart.
  private static let columns = 720

  /// In seconds.
  package let span: Double
  package private(set) var points: [Point] = [Point(seconds: 0, guesses: 0, messages: 0)]
  package private(set) var locks: [Lock] = []

  init(span: Duration) { self.span = Self.seconds(span) }

  /// - Parameter time: the time since the attack began. Must not decrease.
  mutating func record(guesses: Int, messages: Int, after time: Duration) {
    let point = Point(seconds: Self.seconds(time), guesses: guesses, messages: messages)
    // Keeps only the last point of each column.
    if points.count > 1, column(points[points.count - 1].seconds) == column(point.seconds) { points.removeLast() }
    points.append(point)
  }

  mutating func lock(from: Duration, to: Duration) {
    if locks.count < 5_000 { locks.append(Lock(from: Self.seconds(from), to: Self.seconds(to))) }
  }

  private func column(_ seconds: Double) -> Int { span > 0 ? Int(seconds / span * Double(Self.columns)) : 0 }

  private static func seconds(_ duration: Duration) -> Double { Double(duration.wholeMilliseconds) / 1000 }
}
