import MoongateCore

/// What happened when in a simulation: sums over time, and locks.
package struct SimulationTimeline: Sendable, Equatable {
  /// The sums at one moment.
  package struct Point: Sendable, Equatable {
    /// Virtual seconds since the attack began.
    package let seconds: Double
    package let guesses: Int
    package let messages: Int
  }

  /// A lock of the owner's.
  package struct Lock: Sendable, Equatable {
    package let from: Double
    package let to: Double
  }

  /// A picture has no more columns.
  private static let columns = 720

  /// Seconds.
  package let span: Double
  package private(set) var points: [Point] = [Point(seconds: 0, guesses: 0, messages: 0)]
  package private(set) var locks: [Lock] = []

  init(span: Duration) { self.span = Self.seconds(span) }

  /// - Parameter time: since the attack began; never less than before.
  mutating func note(guesses: Int, messages: Int, after time: Duration) {
    let point = Point(seconds: Self.seconds(time), guesses: guesses, messages: messages)
    // Of several moments in one column the last one stays.
    if points.count > 1, column(points[points.count - 1].seconds) == column(point.seconds) { points.removeLast() }
    points.append(point)
  }

  mutating func lock(from: Duration, to: Duration) {
    if locks.count < 5_000 { locks.append(Lock(from: Self.seconds(from), to: Self.seconds(to))) }
  }

  private func column(_ seconds: Double) -> Int { span > 0 ? Int(seconds / span * Double(Self.columns)) : 0 }

  private static func seconds(_ duration: Duration) -> Double { Double(duration.wholeMilliseconds) / 1000 }
}
