import MoongateSDK
import Synchronization

/// The tools for one call and the record of their use.
final class RecordedCapabilities: Sendable {
  /// The record of use.
  struct Use: Sendable {
    var messages: [Message] = []
    var requests: [WebRequest] = []
    /// Comparisons and hashes, in order.
    var hashing: [String] = []
    /// Uses of the key-value store, in order.
    var storing: [String] = []
    var lines: [String] = []
    /// The number of random bytes of each request.
    var random: [Int] = []
    /// Uses after the call had ended.
    var late: [String] = []
    var hasEnded = false

    /// Whether an external tool was used.
    var isAny: Bool { !messages.isEmpty || !requests.isEmpty || !hashing.isEmpty }
    /// Whether a tool was used that can fail.
    var canFail: Bool { isAny || !storing.isEmpty }
  }

  let behavior: ServiceBehavior
  private let state = Mutex(Use())

  init(_ behavior: ServiceBehavior = .works) { self.behavior = behavior }

  var use: Use { state.withLock { $0 } }

  func end() { state.withLock { $0.hasEnded = true } }

  /// Adds observations of an external provider.
  func addObservations(_ seen: ProviderObservations) {
    state.withLock { use in
      use.requests += seen.requests
      use.lines += seen.lines
    }
  }

  func note(_ tool: String, _ change: @Sendable (inout Use) -> Void) {
    state.withLock { use in
      if use.hasEnded { use.late.append(tool) }
      change(&use)
    }
  }
}

/// A thread-safe set of texts.
final class RecordedTexts: Sendable {
  private let texts = Mutex<Set<String>>([])

  var all: Set<String> { texts.withLock { $0 } }

  func add(_ more: some Sequence<String>) { texts.withLock { $0.formUnion(more) } }
}

struct SuiteMessenger: Messenger {
  let capabilities: RecordedCapabilities

  func send(_ message: Message) async throws(DeliveryFault) {
    capabilities.note("messenger") { $0.messages.append(message) }
    switch capabilities.behavior {
    case .works: return
    case .fails: throw DeliveryFault(reason: "the suite's messenger fails")
    case .hangs:
      try? await Task.sleep(for: .seconds(3600))
      throw DeliveryFault(reason: "the call was cancelled")
    }
  }
}

struct SuiteWeb: WebClient {
  let capabilities: RecordedCapabilities
  let answers: @Sendable (WebRequest) async -> WebAnswer?

  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer {
    capabilities.note("web client") { $0.requests.append(request) }
    switch capabilities.behavior {
    case .works:
      guard let answer = await answers(request) else { throw WebFault(reason: "the suite has no answer for this site") }
      return answer
    case .fails: throw WebFault(reason: "the suite's web client fails")
    case .hangs:
      try? await Task.sleep(for: .seconds(3600))
      throw WebFault(reason: "the call was cancelled")
    }
  }
}

/// A fast, insecure salted hash. Only the number of calls matters.
struct SuiteHasher: SecretHasher {
  struct Fault: Error {}

  let capabilities: RecordedCapabilities
  let random: SuiteRandom

  func hash(_ secret: [UInt8]) async throws -> String {
    capabilities.note("hasher") { $0.hashing.append("hash") }
    try await wait()
    let salt = Hex.text(random.bytes(16))
    return "$suite$\(salt)$\(Self.digest(salt, secret))"
  }

  func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict {
    capabilities.note("hasher") { $0.hashing.append("verify") }
    try await wait()
    guard let hash else { return .wrong }
    let parts = hash.split(separator: "$", omittingEmptySubsequences: false)
    guard parts.count == 4, parts[1] == "suite" else { throw Fault() }
    return Self.digest(String(parts[2]), secret) == parts[3] ? .right(rehashed: nil) : .wrong
  }

  private func wait() async throws {
    switch capabilities.behavior {
    case .works: return
    case .fails: throw Fault()
    case .hangs: try await Task.sleep(for: .seconds(3600))
    }
  }

  private static func digest(_ salt: String, _ secret: [UInt8]) -> String {
    var text = ""
    for round: UInt64 in 0..<4 {
      // FNV-1a, 64 bits, four times.
      var hash: UInt64 = 0xcbf2_9ce4_8422_2325 ^ round &* 0x9e37_79b9_7f4a_7c15
      for byte in Array(salt.utf8) + secret { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
      text += Hex.text((0..<8).map { UInt8(truncatingIfNeeded: hash >> (UInt64($0) * 8)) })
    }
    return text
  }
}

/// The key-value store of the suite: in memory for the whole run, with the suite's clock.
struct SuiteStore: KeyValueStore {
  let capabilities: RecordedCapabilities
  let entries: MemoryKeyValueStore

  func value(for key: String) async throws(KeyValueFault) -> [UInt8]? {
    try await use("value")
    return try await entries.value(for: key)
  }

  func set(_ value: [UInt8], for key: String, expiresIn lifetime: Duration) async throws(KeyValueFault) {
    try await use("set")
    try await entries.set(value, for: key, expiresIn: lifetime)
  }

  func setOnce(_ value: [UInt8], for key: String, expiresIn lifetime: Duration) async throws(KeyValueFault) -> Bool {
    try await use("setOnce")
    return try await entries.setOnce(value, for: key, expiresIn: lifetime)
  }

  func take(_ key: String) async throws(KeyValueFault) -> [UInt8]? {
    try await use("take")
    return try await entries.take(key)
  }

  func remove(_ key: String) async throws(KeyValueFault) {
    try await use("remove")
    try await entries.remove(key)
  }

  private func use(_ word: String) async throws(KeyValueFault) {
    capabilities.note("key-value store") { $0.storing.append(word) }
    switch capabilities.behavior {
    case .works: return
    case .fails: throw .unavailable
    case .hangs:
      try? await Task.sleep(for: .seconds(3600))
      throw .unavailable
    }
  }
}

/// The deterministic random source of the suite.
final class SuiteRandom: Sendable {
  private let state: Mutex<UInt64>

  init(seed: UInt64) { state = Mutex(seed) }

  func bytes(_ count: Int) -> [UInt8] {
    state.withLock { state in
      (0..<max(0, count)).map { _ in
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return UInt8(truncatingIfNeeded: mixed ^ (mixed >> 31))
      }
    }
  }
}

/// Bytes as hexadecimal text in lower case. `Hex` of MoongateSDK has package access, which this module has not.
enum Hex {
  static func text(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }
}
