/// What the core lends a provider for one call.
public struct StepTools: Sendable {
  /// Bytes from the system's generator (or a test's).
  public let randomBytes: @Sendable (_ count: Int) -> [UInt8]
  /// The provider's entry in gateway.lua.
  public let settings: StepSettings
  /// Hashes and verifies secrets, in every `submit`; nil in other calls, since what runs before an attempt is charged
  /// must not cost a hash.
  ///
  /// A descriptor with `hashesSecrets` has a permit of the hashing threads reserved before the attempt is charged.
  /// Without it the first use asks for one, and throws where there is none: 503, refunded.
  public var hasher: (any SecretHasher)?
  /// Reaches other sites.
  public let web: any WebClient
  /// The way that gateway.lua names for its messages; nil where it names none. `send` is the easy way to it.
  public let messenger: (any Messenger)?
  /// The operator's log.
  public let log: StepLog
  /// The core's clock.
  public let clock: StepClock
  /// The provider's own key-value store.
  public var store: any KeyValueStore

  /// - Parameters:
  ///   - log: keeps nothing, unless told otherwise.
  ///   - clock: stands at the epoch, unless told otherwise.
  ///   - store: never answers, unless told otherwise.
  public init(
    randomBytes: @escaping @Sendable (Int) -> [UInt8], settings: StepSettings = StepSettings(),
    hasher: (any SecretHasher)? = nil,
    web: any WebClient, messenger: (any Messenger)? = nil, log: StepLog = StepLog { _, _, _ in },
    clock: StepClock = StepClock { 0 },
    store: any KeyValueStore = UnavailableKeyValueStore()
  ) {
    self.randomBytes = randomBytes
    self.settings = settings
    self.hasher = hasher
    self.web = web
    self.messenger = messenger
    self.log = log
    self.clock = clock
    self.store = store
  }

  /// Sends a message by the way that gateway.lua names for this provider. Returns when it was taken over for delivery.
  /// - Throws: where it was not, or gateway.lua names no way.
  public func send(_ message: Message) async throws(DeliveryFault) {
    guard let messenger else { throw DeliveryFault(reason: "gateway.lua names no way for its messages to leave") }
    try await messenger.send(message)
  }
}

/// The core's clock. Time is never read from the system, so that tests and simulations can turn it.
public struct StepClock: Sendable {
  private let read: @Sendable () -> Int64

  /// - Parameter read: milliseconds since the Unix epoch.
  public init(_ read: @escaping @Sendable () -> Int64) { self.read = read }

  /// Milliseconds since the Unix epoch. In one process it only goes forward.
  public var now: Int64 { read() }
}

/// Lines for the operator, beside the core's own. A refusal needs none, nor does an error that is thrown: the core logs
/// those.
///
/// Whatever the client sent in this step, codes, identifiers and secret settings are replaced by `[redacted]` before
/// anything is written; that is a net, and no reason to log them.
public struct StepLog: Sendable {
  /// How much it matters.
  public enum Level: String, Sendable, CaseIterable, Codable {
    case info, notice, warning, error
  }

  private let write: @Sendable (_ level: Level, _ sentence: String, _ values: [String: String]) -> Void

  /// - Parameter write: takes one line: how much it matters, a sentence, and named values.
  public init(_ write: @escaping @Sendable (_ level: Level, _ sentence: String, _ values: [String: String]) -> Void) {
    self.write = write
  }

  /// What goes on as it should, for whoever looks closely.
  public func info(_ sentence: String, _ values: [String: String] = [:]) { write(.info, sentence, values) }

  /// What an operator would want to know.
  public func notice(_ sentence: String, _ values: [String: String] = [:]) { write(.notice, sentence, values) }

  /// What will go wrong if nobody looks after it.
  public func warning(_ sentence: String, _ values: [String: String] = [:]) { write(.warning, sentence, values) }

  /// What went wrong.
  public func error(_ sentence: String, _ values: [String: String] = [:]) { write(.error, sentence, values) }

  /// By a level that is known only when it runs.
  public func line(_ level: Level, _ sentence: String, _ values: [String: String] = [:]) {
    write(level, sentence, values)
  }
}
