import Synchronization

/// What must not stand in a log: the secrets that a program was given for good, and what each call tells it of a person, for a while.
///
/// A program is a stranger's; what it prints while it debugs is whatever it was told.
final class SecretTexts: Sendable {
  /// What a program prints about a call reaches us a little later, and buffered.
  private static let memory: Duration = .seconds(60)
  /// Of a thousand calls at once, and what each tells.
  private static let most = 8_192
  /// A shorter text would blot out half of every line, and is not worth hiding.
  private static let shortest = 4

  private struct State {
    var lasting: [String]
    var passing: [(text: String, until: ContinuousClock.Instant)] = []
  }

  private let state: Mutex<State>

  init(_ lasting: some Sequence<String>) {
    state = Mutex(State(lasting: Self.worthHiding(lasting)))
  }

  func add(lasting texts: some Sequence<String>) {
    let texts = Self.worthHiding(texts)
    state.withLock { state in state.lasting = Self.worthHiding(state.lasting + texts) }
  }

  func add(_ texts: some Sequence<String>, at now: ContinuousClock.Instant) {
    let until = now + Self.memory
    let texts = Self.worthHiding(texts)
    state.withLock { state in
      if let first = state.passing.first, first.until < now { state.passing.removeAll { $0.until < now } }
      state.passing += texts.map { ($0, until) }
    }
  }

  /// The longest first, so that a part of one does not spoil the whole.
  private static func worthHiding(_ texts: some Sequence<String>) -> [String] {
    Set(texts).filter { $0.utf8.count >= shortest }.sorted { $0.utf8.count > $1.utf8.count }
  }

  /// The text without any of them.
  func redacted(_ text: String) -> String {
    let (lasting, passing) = state.withLock { ($0.lasting, $0.passing) }
    guard passing.count <= Self.most else { return "[withheld: too many calls are under way to look for what they hold]" }
    var redacted = text
    for secret in lasting where redacted.contains(secret) { redacted = redacted.replacing(secret, with: "[redacted]") }
    for (secret, _) in passing.sorted(by: { $0.text.utf8.count > $1.text.utf8.count }) where redacted.contains(secret) {
      redacted = redacted.replacing(secret, with: "[redacted]")
    }
    return redacted
  }
}
