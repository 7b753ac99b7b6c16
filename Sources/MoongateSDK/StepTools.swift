/// The tools that the core provides for one call.
public struct StepTools: Sendable {
  /// Random bytes from the system's generator (or a test's).
  public let randomBytes: @Sendable (_ count: Int) -> [UInt8]
  /// The provider's entry in gateway.lua.
  public let settings: StepSettings
  /// Hashes and verifies secrets. Available in every `submit`; nil in other calls, because work before an attempt is
  /// charged must not include hashing.
  ///
  /// With `hashesSecrets`, a permit for the hashing threads is reserved before the attempt is charged. Without it, the
  /// first use requests a permit, and throws if none is free: 503, refunded.
  public var hasher: (any SecretHasher)?
  /// Sends requests to other sites.
  public let web: any WebClient
  /// The messenger that gateway.lua configures for its messages; nil if it configures none. `send` is a shortcut.
  public let messenger: (any Messenger)?
  /// The operator's log.
  public let log: StepLog
  /// The core's clock.
  public let clock: StepClock
  /// The provider's own key-value store.
  public var store: any KeyValueStore
  /// The function `identity` of the policy.
  public var identity: IdentityMapper
  /// The sessions that the provider's identities have opened.
  public var sessions: SiteSessions

  /// More than five parameters: one for each field.
  /// - Parameters:
  ///   - log: by default, discards everything.
  ///   - clock: by default, stays at the epoch.
  ///   - store: by default, always throws.
  ///   - identity: by default, a policy without the function.
  ///   - sessions: by default, always throws.
  public init(
    randomBytes: @escaping @Sendable (Int) -> [UInt8], settings: StepSettings = StepSettings(),
    hasher: (any SecretHasher)? = nil,
    web: any WebClient, messenger: (any Messenger)? = nil, log: StepLog = StepLog { _, _, _ in },
    clock: StepClock = StepClock { 0 },
    store: any KeyValueStore = UnavailableKeyValueStore(), identity: IdentityMapper = IdentityMapper(),
    sessions: SiteSessions = SiteSessions()
  ) {
    self.randomBytes = randomBytes
    self.settings = settings
    self.hasher = hasher
    self.web = web
    self.messenger = messenger
    self.log = log
    self.clock = clock
    self.store = store
    self.identity = identity
    self.sessions = sessions
  }

  /// Sends a message by the channel that gateway.lua configures for this provider. Returns when it was accepted for
  /// delivery.
  /// - Throws: if it was not accepted, or gateway.lua configures no channel.
  public func send(_ message: Message) async throws(DeliveryFault) {
    guard let messenger else { throw DeliveryFault(reason: "gateway.lua configures no delivery for its messages") }
    try await messenger.send(message)
  }
}

/// The core's clock. Do not read the system's time, so that tests and simulations can control it.
public struct StepClock: Sendable {
  private let read: @Sendable () -> Int64

  /// - Parameter read: returns milliseconds since the Unix epoch.
  public init(_ read: @escaping @Sendable () -> Int64) { self.read = read }

  /// Milliseconds since the Unix epoch. Never goes backwards within a process.
  public var now: Int64 { read() }
}

/// Additional log lines for the operator. Refusals and thrown errors need none: the core logs those.
///
/// Everything that the client sent in this step, codes, identifiers and secret settings are replaced by `[redacted]`
/// before a line is written. This is only a safety net: do not log them.
public struct StepLog: Sendable {
  /// The severity.
  public enum Level: String, Sendable, CaseIterable, Codable {
    case info, notice, warning, error
  }

  private let write: @Sendable (_ level: Level, _ sentence: String, _ values: [String: String]) -> Void
  private let explain: @Sendable (_ reason: String) -> Void

  /// - Parameters:
  ///   - explain: adds a reason to the decision that `moongate policy explain` shows. By default, does nothing.
  ///   - write: writes one line with a severity, a sentence and named values.
  public init(
    explaining explain: @escaping @Sendable (_ reason: String) -> Void = { _ in },
    _ write: @escaping @Sendable (_ level: Level, _ sentence: String, _ values: [String: String]) -> Void
  ) {
    self.explain = explain
    self.write = write
  }

  /// Logs why the step is about to refuse, and adds it to the decision that `moongate policy explain` shows. For
  /// operators: the client only sees the outcome.
  /// - Parameter reason: a few words, such as the name and value of the claim that was wrong. Never a secret.
  public func refusal(_ reason: String) {
    write(.notice, "refused: \(reason)", [:])
    explain(reason)
  }

  /// For normal operation, of interest in detailed logs.
  public func info(_ sentence: String, _ values: [String: String] = [:]) { write(.info, sentence, values) }

  /// For events that an operator should know about.
  public func notice(_ sentence: String, _ values: [String: String] = [:]) { write(.notice, sentence, values) }

  /// For problems that need attention before something fails.
  public func warning(_ sentence: String, _ values: [String: String] = [:]) { write(.warning, sentence, values) }

  /// For failures.
  public func error(_ sentence: String, _ values: [String: String] = [:]) { write(.error, sentence, values) }

  /// Logs at a level that is determined at run time.
  public func line(_ level: Level, _ sentence: String, _ values: [String: String] = [:]) {
    write(level, sentence, values)
  }
}
