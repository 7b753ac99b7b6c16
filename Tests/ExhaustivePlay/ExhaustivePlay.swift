import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization

/// Counts runs.
private final class Counter: Sendable {
  private let count = Atomic<Int>(0)

  func next() -> Int { count.add(1, ordering: .relaxed).newValue }
}

/// Plays all paths through all flows of a configuration on the real engine, for all distinguishable accounts, and
/// records each session that begins.
struct ExhaustivePlay {
  /// An account, its device and the network.
  struct World: Hashable {
    enum Address { case none, claimed, verified }

    var hasPhone = false
    var email = Address.none
    var isFederated = false
    var hasName = false
    var hasPIN = false
    var hasPassword = false
    var isKnownDevice = false
    var isOld = false
    /// Whether the account is a member of the group `staff`.
    var isStaff = false

    /// Whether the account has the facts of a guarantee when a flow begins.
    /// - Parameter isRecovered: whether the account was taken over by verifying an address that it only claimed. It
    ///   then keeps no earlier factors.
    func fits(_ facts: KnownFacts, isNewAccount: Bool, isRecovered: Bool) -> Bool {
      facts.all.allSatisfy { fact, value in
        let isTrue =
          switch fact {
          case .newDevice: isNewAccount || !isKnownDevice
          case _ where isNewAccount: false
          case .exists: true
          case .holds(.email): email != .none
          case .verified(.email): email == .verified
          case .holds(.phone), .verified(.phone): hasPhone
          case .holds(.federated), .verified(.federated): isFederated
          case .holds(.name): hasName
          case .verified(.name): false
          case .keeps(let provider):
            provider.rawValue == "pin" ? hasPIN && !isRecovered : provider.rawValue == "password" && hasPassword
          case .group: isStaff
          case .networkChanged: false
          }
        return isTrue == value
      }
    }
  }

  /// A session that began.
  struct Begun: Hashable {
    let world: World
    let isNewAccount: Bool
    let isRecovered: Bool
    let passed: Set<ProviderName>
  }

  /// The owner of the identifier or secret in an act.
  enum Whose: Hashable { case own, fresh }

  /// An act of a user.
  enum Act: Hashable {
    case skip
    case code(ProviderName, Whose)
    /// - Parameters:
    /// - address: the email address of the federated identity; nil without one.
    /// - isVouched: whether the other site issues the address.
    case google(Whose, address: Whose?, isVouched: Bool)
    case pin
    /// - Parameter named: the owner of the entered address; nil without one.
    case password(named: Whose?)
    case passwordWithName(Whose)
  }

  let configuration: RandomConfiguration
  let generation: any PolicyGeneration
  let engine: FlowEngine
  let providers: ProviderRegistry
  let store: SQLiteStore
  let clock: ManualClock
  let keys: KeyRing
  let random: SeededRandom
  let mailbox: Mailbox
  /// The stored records of secrets.
  private let hashes: [String: String]
  private let counter = Counter()

  static let home = ClientAddress(bytes: [203, 0, 113, 1]) ?? .unspecified
  static let away = ClientAddress(bytes: [198, 51, 100, 1]) ?? .unspecified

  init(_ configuration: RandomConfiguration, _ generation: any PolicyGeneration, providers: ProviderRegistry) throws {
    self.configuration = configuration
    self.generation = generation
    self.providers = providers
    clock = ManualClock()
    store = try SQLiteStore.memory()
    random = SeededRandom(seed: 1)
    keys = try KeyRing(master: random.bytes(32))
    mailbox = Mailbox()
    let hashing = SecretHashing(keys: keys, random: random, cost: .cheap)
    hashes = [
      Self.pin: try hashing.hash(Array(Self.pin.utf8)), Self.password: try hashing.hash(Array(Self.password.utf8)),
    ]
    let log = CapturedLog()
    engine = FlowEngine(
      store: store, generations: ActiveGeneration(generation, at: clock.now()), providers: providers, delivery: mailbox,
      hashing: InlineHashing(hashing), clock: clock, random: random, keys: keys,
      audit: AuditTrail(store: store, logger: log.logger),
      logger: log.logger)
  }

  /// All sessions that begin.
  func play() async throws -> Set<Begun> {
    var begun: Set<Begun> = []
    let entryPoints = generation.flows.values.filter { !$0.needsSession(by: providers) }.map(\.name).sorted()
    for world in worlds { for entryPoint in entryPoints { try await explore(entryPoint, world, &begun) } }
    return begun
  }

  /// The accounts that this configuration or its guarantees can distinguish.
  private var worlds: [World] {
    let text = configuration.files.values.joined()
    var worlds = [World()]
    func vary<Value>(_ isWanted: Bool, _ path: WritableKeyPath<World, Value>, _ values: [Value]) {
      guard isWanted else { return }
      worlds = worlds.flatMap { world in
        values.map { value in
          var world = world
          world[keyPath: path] = value
          return world
        }
      }
    }
    vary(text.contains("phone"), \.hasPhone, [true, false])
    vary(["email", "google", "password"].contains(where: text.contains), \.email, [.none, .claimed, .verified])
    vary(text.contains("google"), \.isFederated, [true, false])
    vary(identifiesByName, \.hasName, [true, false])
    vary(text.contains("pin"), \.hasPIN, [true, false])
    vary(text.contains("password"), \.hasPassword, [true, false])
    vary(text.contains("new_device"), \.isKnownDevice, [true, false])
    vary(configuration.readsAge, \.isOld, [true, false])
    vary(text.contains("groups.staff"), \.isStaff, [true, false])
    return worlds
  }

  private var identifiesByName: Bool { configuration.files["gateway.lua"]?.contains("identify_by") ?? false }

  // MARK: one path

  /// A run of a flow by a user with separate identifiers.
  private struct Run {
    let flow: FlowID
    let account: String
    let device: SecretText?
    let number: Int
  }

  /// The acts that the user can try.
  private func acts(_ world: World) -> [(act: Act, address: ClientAddress)] {
    var acts: [Act] = [.skip]
    for name in configuration.providers {
      guard let provider = ProviderName(rawValue: name) else { continue }
      switch name {
      case "phone_otp": acts += (world.hasPhone ? [.code(provider, .own)] : []) + [.code(provider, .fresh)]
      case "email_code": acts += (world.email != .none ? [.code(provider, .own)] : []) + [.code(provider, .fresh)]
      case "google_oauth":
        acts += world.isFederated ? [.google(.own, address: nil, isVouched: true)] : []
        acts += world.email == .verified ? [true, false].map { .google(.fresh, address: .own, isVouched: $0) } : []
        acts.append(.google(.fresh, address: nil, isVouched: true))
      case "pin": acts += world.hasPIN ? [.pin] : []
      default:
        acts +=
          (world.email != .none ? [.password(named: .own)] : []) + [.password(named: nil), .password(named: .fresh)]
        if identifiesByName {
          acts += (world.hasName ? [.passwordWithName(.own)] : []) + [.passwordWithName(.fresh)]
        }
      }
    }
    return acts.flatMap { act in (configuration.readsNetwork ? [Self.home, Self.away] : [Self.home]).map { (act, $0) } }
  }

  /// Explores all paths that begin with these acts. Each successful act is explored once for each following act.
  /// - Parameter reached: a run that has already performed them.
  private func explore(
    _ entryPoint: String, _ world: World, after acts: [(act: Act, address: ClientAddress)] = [], reached: Run? = nil,
    _ begun: inout Set<Begun>
  ) async throws {
    var run = reached
    for (act, address) in self.acts(world) {
      if run == nil { run = try await replay(acts, entryPoint, world) }
      guard let started = run else { return }
      guard let view = await perform(act, from: address, started) else {
        // A refused act that leaves the flow unchanged can be followed by another one. This does not apply to a
        // registration with an existing address, which is refused only after the last step.
        if await choices(of: started) == [] { run = nil }
        continue
      }
      run = nil
      if view.status == .complete {
        try await note(view, entryPoint, started, world, &begun)
      } else if acts.count < 6 {
        try await explore(entryPoint, world, after: acts + [(act, address)], reached: started, &begun)
      }
    }
  }

  private func choices(of run: Run) async -> [ProviderName] {
    (try? await engine.view(run.flow, client: client(Self.home, run.device)).get())?.choices ?? []
  }

  private func replay(_ prefix: [(act: Act, address: ClientAddress)], _ entryPoint: String, _ world: World) async throws
    -> Run?
  {
    let number = counter.next()
    let account = try await makeAccount(world, number)
    let now = clock.now()
    var device: SecretText?
    if world.isKnownDevice, let known = try await store.account(account),
      let trust = keys.trusting(nil, for: known, passed: [], userAgent: nil, now, random)
    {
      _ = try await store.apply([trust.change], at: now)
      device = trust.token
    }
    let client = client(Self.home, device).invited(by: try await invitation(into: world))
    guard case .success(let view) = await engine.create(entryPoint, returnTo: nil, browser: nil, client: client) else {
      return nil
    }
    let run = Run(flow: view.id, account: account, device: device, number: number)
    for (act, address) in prefix { guard await perform(act, from: address, run) != nil else { return nil } }
    return run
  }

  private func client(_ address: ClientAddress, _ device: SecretText?) -> ClientContext {
    ClientContext(
      decision: DecisionID(from: random), address: address, userAgent: nil, browser: nil, session: nil, device: device)
  }

  /// A new invitation for anybody, into the groups of the world's account; nil if none is needed.
  private func invitation(into world: World) async throws -> SecretText? {
    guard configuration.isByInvitation else { return nil }
    let (now, code) = (clock.now(), InvitationCode(from: random))
    let groups = world.isStaff ? [GroupName(rawValue: "staff")].compactMap(\.self) : []
    let invitation = Invitation(
      id: "in_\(counter.next())", code: code.hash, identifier: nil, groups: groups, createdAt: now,
      expiresAt: now + .seconds(86_400))
    _ = try await store.apply([.putInvitation(invitation)], at: now)
    return code.secret
  }

  private func makeAccount(_ world: World, _ number: Int) async throws -> String {
    let now = clock.now()
    let long = now - .seconds(90 * 86_400)
    var identifiers: [HeldIdentifier] = []
    func hold(_ kind: IdentifierKind, _ value: String, isVerified: Bool) {
      identifiers.append(
        HeldIdentifier(
          identifier: Identifier(kind: kind, value: value, display: value), verifiedAt: isVerified ? long : nil))
    }
    if world.hasPhone { hold(.phone, phone(.own, number), isVerified: true) }
    if world.email != .none { hold(.email, email(.own, number), isVerified: world.email == .verified) }
    if world.isFederated { hold(.federated, "https://google.example \(subject(.own, number))", isVerified: true) }
    if world.hasName { hold(.name, name(.own, number), isVerified: false) }
    let account = Account(
      id: "ac_" + Base64URL.encode(random.bytes(16)), createdAt: world.isOld ? long : now, lastSeenAt: now,
      identifiers: identifiers)
    var changes: [Change] = [.createAccount(account)]
    for (name, secret, isKept) in [("pin", Self.pin, world.hasPIN), ("password", Self.password, world.hasPassword)]
    where isKept {
      guard let provider = ProviderName(rawValue: name) else { continue }
      let sealed = try keys.seal(Array((hashes[secret] ?? "").utf8), for: "\(provider) \(account.id)")
      changes.append(.putProviderRecord(account: account.id, provider, sealed: sealed))
    }
    if world.isStaff, let staff = GroupName(rawValue: "staff") {
      changes.append(.setGroupMembership(account: account.id, staff, true))
    }
    _ = try await store.apply(changes, at: now)
    return account.id
  }

  private static let pin = "739154"
  private static let password = "correct horse battery staple"

  private func phone(_ whose: Whose, _ number: Int) -> String {
    "+91" + String((whose == .own ? 9_000_000_000 : 8_000_000_000) + number)
  }
  private func email(_ whose: Whose, _ number: Int) -> String {
    "\(whose == .own ? "own" : "fresh")\(number)@example.com"
  }
  private func name(_ whose: Whose, _ number: Int) -> String { "\(whose == .own ? "own" : "fresh")-\(number)" }
  private func subject(_ whose: Whose, _ number: Int) -> String { "\(whose == .own ? "own" : "fresh")-\(number)" }

  /// - Returns: nil if it is refused.
  private func perform(_ act: Act, from address: ClientAddress, _ run: Run) async -> FlowView? {
    clock.advance(by: .seconds(2))
    let client = client(address, run.device)
    switch act {
    case .skip: return try? await engine.skip(run.flow, client: client).get()
    case .code(let provider, let whose):
      let isPhone = provider.rawValue == "phone_otp"
      let to = isPhone ? phone(whose, run.number) : email(whose, run.number)
      let began = await engine.begin(
        run.flow, provider: provider.rawValue, fields: [isPhone ? "phone" : "email": .text(to)], client: client)
      await engine.deliveriesEnd()
      guard case .success(let view) = began else { return nil }
      // A policy requires another provider first.
      guard view.step?.provider == provider else { return view }
      guard let code = mailbox.latest(to: to)?.code else { return nil }
      return try? await engine.submit(run.flow, fields: ["code": .text(code)], client: client).get()
    case .google(let whose, let address, let isVouched):
      var fields: [String: InputValue] = ["subject": .text(subject(whose, run.number))]
      if let address { fields[isVouched ? "email" : "attested"] = .text(email(address, run.number)) }
      return await give("google_oauth", fields, run, client)
    case .pin: return await give("pin", ["pin": .text(Self.pin)], run, client)
    case .password(let named):
      return await givePassword(named.map { ("email", email($0, run.number)) }, run, client)
    case .passwordWithName(let whose): return await givePassword(("name", name(whose, run.number)), run, client)
    }
  }

  private func givePassword(_ identifier: (field: String, text: String)?, _ run: Run, _ client: ClientContext) async
    -> FlowView?
  {
    var fields: [String: InputValue] = [
      "password": .text(Self.password), "first_name": .text("Asha"), "last_name": .text("Rao"),
    ]
    if let identifier { fields[identifier.field] = .text(identifier.text) }
    return await give("password", fields, run, client)
  }

  private func give(_ provider: String, _ fields: [String: InputValue], _ run: Run, _ client: ClientContext) async
    -> FlowView?
  {
    guard case .success(let view) = await engine.begin(run.flow, provider: provider, fields: fields, client: client)
    else { return nil }
    guard view.step?.provider.rawValue == provider else { return view }
    return try? await engine.submit(run.flow, fields: fields, client: client).get()
  }

  private func note(_ view: FlowView, _ entryPoint: String, _ run: Run, _ world: World, _ begun: inout Set<Begun>)
    async throws
  {
    guard let token = view.session?.token, let session = try await store.session(TokenHash(of: token.reveal().utf8))
    else { return }
    let isRecovered =
      entryPoint == "password_reset" && !world.hasPhone && world.email != .verified && !world.isFederated
      && !world.hasName
    begun.insert(
      Begun(
        world: world, isNewAccount: session.account.id != run.account, isRecovered: isRecovered,
        passed: Set(session.session.passed.map(\.provider))))
  }
}

/// A federated provider without the other site, which accepts any named user.
struct BelievedGoogle: FullProvider {
  let descriptor = ProviderDescriptor(
    name: "google_oauth",
    beginFields: [
      InputField(name: "subject", kind: .text), InputField(name: "email", kind: .email, isRequired: false),
      InputField(name: "attested", kind: .email, isRequired: false),
    ], submitFields: [],
    settings: [],
    policy: PolicySource(
      file: "Plugins/OpenID/policy.lua",
      text:
        "return policy \"google_oauth\" { limits = { verify = { on = \"verify\", per = \"flow\", max = 5, window = \"15m\" } } }"
    ),
    identifierKinds: [.federated, .email], outcomes: [])

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .ask(descriptor.beginFields, state: [])
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    let subject = "https://google.example \(try input.text("subject"))"
    var proved = [Identifier(kind: .federated, value: subject, display: subject)]
    if let email = try input.optionalText("email") {
      proved.append(Identifier(kind: .email, value: email, display: email))
    }
    let attested = try input.optionalText("attested").map { [Identifier(kind: .email, value: $0, display: $0)] } ?? []
    return .proved(Proof(proved: proved, attested: attested))
  }
}
