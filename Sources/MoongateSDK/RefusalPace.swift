import Synchronization

/// Makes refusals take the same time, whether or not a site knows the name.
///
/// Attack: a site hashes the password of a user that it has, and answers sooner for one that it does not have. All
/// refusals therefore take as long as the longest of the last ones for known names, and end at full steps of time.
public final class RefusalPace: Sendable {
  private static let step: Duration = .milliseconds(250)
  private static let most: Duration = .seconds(2)
  /// The longest duration at each site. It becomes shorter with each refusal, in case it was an exception.
  private let longest = Mutex<[String: Duration]>([:])
  private let sleep: @Sendable (Duration) async -> Void

  /// - Parameter sleep: waits; tests return at once.
  public init(sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }) {
    self.sleep = sleep
  }

  /// Waits until a refusal may be answered.
  /// - Parameters:
  ///   - began: when the site was asked.
  ///   - isKnown: whether the site has compared a secret of this name.
  public func wait(since began: ContinuousClock.Instant, at site: String, isKnown: Bool) async {
    await sleep(remaining(after: ContinuousClock.now - began, at: site, isKnown: isKnown))
  }

  func remaining(after taken: Duration, at site: String, isKnown: Bool) -> Duration {
    let known = longest.withLock { longest in
      if isKnown { longest[site] = min(Self.most, max(taken, (longest[site] ?? .zero) * 0.95)) }
      return longest[site] ?? .zero
    }
    let steps = (max(taken, known) / Self.step).rounded(.up)
    return max(.zero, Self.step * max(1, Int(steps)) - taken)
  }
}
