import Foundation
import Logging
import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization

/// The shipped configuration on the real engine, with users who have PINs and passwords.
final class SecretsBench: Sendable {
  let clock = ManualClock()
  let random = SeededRandom()
  let store: any Store
  let keys: KeyRing
  let log = CapturedLog()
  let audit: AuditTrail
  let engine: FlowEngine
  let mailbox = Mailbox()
  let hashing: SecretHashing

  static let pin = "739154"
  static let password = "correct horse battery staple"
  static let address = "asha@example.com"

  /// - Parameters:
  /// - hashing: nil: in place, at the given cost.
  /// - store: nil: in memory.
  init(permits: (any HashingPermits)? = nil, store: (any Store)? = nil, cost: HashCost = .cheap) throws {
    self.store = try store ?? SQLiteStore.memory()
    keys = try Self.keys()
    hashing = SecretHashing(keys: keys, random: random, cost: cost)
    let loaded = ConfigurationLoader(providers: ShippedProviders.all, environment: [:]).load(
      folder: TestFolder.root + "/config")
    let generation: any PolicyGeneration
    switch loaded {
    case .success(let good): generation = good
    case .failure(let refused): throw TestFolder.Refused(problems: refused.problems.map(\.description))
    }
    audit = AuditTrail(store: self.store, logger: log.logger)
    engine = FlowEngine(
      store: self.store, generations: ActiveGeneration(generation, at: clock.now()),
      providers: try ProviderRegistry(ShippedProviders.all),
      delivery: mailbox, hashing: permits ?? InlineHashing(hashing), clock: clock, random: random, keys: keys,
      audit: audit, logger: log.logger)
  }

  static func keys() throws -> KeyRing { try KeyRing(master: [UInt8](repeating: 7, count: 32)) }

  /// A user with an email address, a PIN and a password.
  @discardableResult
  func person(
    _ id: String = "ac_1", address: String = SecretsBench.address, pin: String? = SecretsBench.pin,
    password: String? = SecretsBench.password
  )
    async throws -> String
  {
    guard let email = EmailAddress(address) else { throw TestFolder.Refused(problems: ["no address"]) }
    let now = clock.now()
    var changes: [Change] = [
      .createAccount(
        Account(
          id: id, firstName: "Asha", lastName: "Rao", createdAt: now, lastSeenAt: now,
          identifiers: [HeldIdentifier(identifier: Identifier(email), verifiedAt: now)]))
    ]
    for (provider, secret) in [("pin", pin), ("password", password)] as [(ProviderName, String?)] {
      guard let secret else { continue }
      let sealed = try keys.seal(Array(hashing.hash(Array(secret.utf8)).utf8), for: "\(provider) \(id)")
      changes.append(.putProviderRecord(account: id, provider, sealed: sealed))
    }
    _ = try await store.apply(changes, at: now)
    return id
  }

  /// An account with a hash of another program, as `moongate account import` takes it in.
  func imported(_ hash: String, address: String) async throws -> String {
    let email =
      try EmailAddress(address).map(Identifier.init) ?? { throw TestFolder.Refused(problems: ["no address"]) }()
    var account = ImportedAccount(identifiers: [ImportedAccount.Name(identifier: email, isVerified: true)])
    account.records["password"] = ProviderRecord(bytes: Array(hash.utf8), version: 1)
    let administration = AccountAdministration(
      store: store, providers: try ProviderRegistry(ShippedProviders.all), keys: keys, clock: clock, random: random)
    guard try await administration.add([account]).isEmpty, let id = try await store.account(holding: email)?.id else {
      throw TestFolder.Refused(problems: ["not imported"])
    }
    return id
  }

  /// The stored hash.
  func record(_ provider: ProviderName, of account: String = "ac_1") async throws -> String? {
    try await store.providerRecord(of: account, for: provider).map {
      String(decoding: try keys.open($0, for: "\(provider) \(account)"), as: UTF8.self)
    }
  }

  func client(_ session: SessionSnapshot? = nil, from address: [UInt8] = [203, 0, 113, 1]) -> ClientContext {
    ClientContext(
      decision: DecisionID(from: random), address: ClientAddress(bytes: address) ?? .unspecified, userAgent: nil,
      browser: nil, session: session)
  }

  /// A session of the account, as if it had just signed in.
  func session(of account: String = "ac_1") async throws -> SessionSnapshot {
    let now = clock.now()
    let token = SessionToken(from: random).hash
    let proved = try await store.account(account)?.identifiers.first.map { keys.proofHash(of: $0.identifier) }
    let session = Session(
      id: "se_" + Base64URL.encode(random.bytes(12)), token: token, account: account, createdAt: now,
      expiresAt: now + .seconds(43_200),
      idle: .seconds(43_200), lastSeenAt: now,
      passed: [PassedStep(provider: "email_code", at: now, identifier: proved)], userAgent: nil)
    _ = try await store.apply([.putSession(session)], at: now)
    guard let found = try await store.session(token) else { throw TestFolder.Refused(problems: ["no session"]) }
    return found
  }

  /// Begins a new flow and its first step with these fields.
  func enter(
    _ flow: String, _ provider: String, _ fields: [String: String], by client: ClientContext
  ) async -> Result<FlowView, Refusal> {
    switch await engine.create(flow, returnTo: nil, browser: nil, client: client) {
    case .failure(let refusal): .failure(refusal)
    case .success(let view):
      await engine.begin(view.id, provider: provider, fields: fields.mapValues { .text($0) }, client: client)
    }
  }

  /// Signs in with a password.
  func login(
    _ password: String, as address: String = SecretsBench.address, from client: [UInt8] = [203, 0, 113, 1]
  ) async -> Result<FlowView, Refusal> {
    await enter("login_password", "password", ["email": address, "password": password], by: self.client(from: client))
  }
}

extension Result where Success == FlowView, Failure == Refusal {
  /// The error code of a refusal, or the state of the flow.
  var told: String {
    switch self {
    case .success(let view): view.status.rawValue
    case .failure(let refusal): refusal.code.name
    }
  }

  var refusal: Refusal? { if case .failure(let refusal) = self { refusal } else { nil } }
}

/// Unlimited permits, whose comparisons are counted.
final class CountedPermits: HashingPermits, SecretHasher {
  private let hashing: SecretHashing
  private let state = Mutex((verified: 0, hashed: 0))
  /// Awaited before each comparison.
  private let gate: (@Sendable () async -> Void)?

  init(_ hashing: SecretHashing, gate: (@Sendable () async -> Void)? = nil) {
    self.hashing = hashing
    self.gate = gate
  }

  var verified: Int { state.withLock { $0.verified } }
  var hashed: Int { state.withLock { $0.hashed } }

  func acquirePermit(for address: [UInt8], salt: [UInt8]?) async -> (any SecretHasher)? { self }

  func hash(_ secret: [UInt8]) async throws -> String {
    state.withLock { $0.hashed += 1 }
    return try hashing.hash(secret)
  }

  func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict {
    state.withLock { $0.verified += 1 }
    await gate?()
    return try hashing.verify(secret, against: hash)
  }
}

/// Unlimited permits, of which each records what its attempt has hashed.
final class RecordingPermits: HashingPermits {
  private struct Hasher: BalancingHasher {
    let hashing: SecretHashing
    let done: AttemptHashes

    func hash(_ secret: [UInt8]) async throws -> String { try hashing.hash(secret) }

    func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict {
      try hashing.verify(secret, against: hash, remembering: done)
    }

    func balance(_ kinds: Set<HashWork>) async {
      guard !kinds.isEmpty else { return }
      try? hashing.balance(kinds, done)
    }
  }

  private let hashing: SecretHashing
  private let attempts = Mutex<[AttemptHashes]>([])

  init(_ hashing: SecretHashing) { self.hashing = hashing }

  /// What the last attempt has hashed.
  var last: [HashWork] { attempts.withLock { $0.last }?.works ?? [] }

  func acquirePermit(for address: [UInt8], salt: [UInt8]?) async -> (any SecretHasher)? {
    let done = AttemptHashes()
    attempts.withLock { $0.append(done) }
    return Hasher(hashing: hashing, done: done)
  }
}

/// No permits.
struct NoPermits: HashingPermits {
  func acquirePermit(for address: [UInt8], salt: [UInt8]?) async -> (any SecretHasher)? { nil }
}
