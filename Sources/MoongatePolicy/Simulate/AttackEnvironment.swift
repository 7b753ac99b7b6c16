import MoongateCore
import MoongateSDK

/// The environment of an attack: a virtual gateway with honest users, and the operations of the attacker.
final class AttackEnvironment {
  /// The user whose account is attacked.
  static let owner = 0

  /// An honest user who signs in regularly from home with the right code.
  struct LegitimateUser {
    let person: Int
    let home: ClientAddress
    let pause: Duration
    var next: Timestamp
    /// Whether they keep the device token of a sign-in. Others use a new device each time.
    let keepsDevice: Bool
    var device: SecretText?
    var signIns = 0
    var refused = 0
  }

  let gateway: VirtualGateway
  let target: Target
  let policy: ProviderPolicy
  let end: Timestamp
  let start: Timestamp
  private let addresses: Int
  private let networks: Int
  private let deadline: ContinuousClock.Instant
  private var people: SimulatedAccounts
  private var turn = 0
  /// How many hours in a row no flow could be begun, because `admit` of accounts.lua refused it.
  private var hoursRefused = 0

  private(set) var guesses = 0
  /// Guesses and messages when the clock last advanced.
  private(set) var settled = (guesses: 0, messages: 0)
  /// The owner is the first.
  private var users: [LegitimateUser]
  private(set) var lockedOut: Duration = .zero
  /// Accounts that the attacker created, and the hashes that were computed for them.
  var registrations = 0
  var hashes = 0
  /// The course of events, for a chart.
  private(set) var timeline: SimulationTimeline
  /// Why the attacker gave up before the end; nil otherwise.
  private(set) var ended: AttackEnd?
  /// Users who register now and then; nil if the attack does not register accounts.
  var newcomers: NewRegistrations?

  /// More than five parameters: the numbers of the simulation, and its target.
  init(
    _ gateway: VirtualGateway, target: Target, policy: ProviderPolicy, span: Duration, addresses: Int, networks: Int,
    timeLimit: Duration,
    seed: UInt64
  ) throws {
    self.gateway = gateway
    self.target = target
    self.policy = policy
    self.addresses = addresses
    self.networks = networks
    people = SimulatedAccounts(gateway, target, policy.provider)
    start = gateway.clock.now()
    end = start + span
    timeline = SimulationTimeline(span: span)
    deadline = ContinuousClock.now + timeLimit
    let begin = start
    // The owner signs in three times a day, five others once, at times that do not coincide with the attacker's round
    // hours.
    users = (0..<6).map { number -> LegitimateUser in
      let isOwner = number == 0
      let offset = Int((seed &* 7_919 &+ UInt64(number) &* 104_729) % (isOwner ? 27_000 : 80_000)) + 611
      return LegitimateUser(
        person: isOwner ? Self.owner : 900_000_000 + number,
        home: ClientAddress(bytes: [192, 0, 2, UInt8(1 + number)]) ?? .unspecified,
        pause: .seconds((isOwner ? 8 : 24) * 3600), next: begin + .seconds(offset),
        keepsDevice: (1...3).contains(number))
    }
  }

  var owner: LegitimateUser { users[0] }
  /// The users who are not attacked.
  var others: ArraySlice<LegitimateUser> { users.dropFirst() }

  var now: Timestamp { gateway.clock.now() }
  var isOver: Bool { now >= end || ContinuousClock.now >= deadline }

  /// The attacker's next address, in rotation.
  func nextAddress() -> ClientContext {
    turn += 1
    return address(turn)
  }

  /// The number of addresses.
  var round: Int { addresses }

  /// Whether all addresses have been used in this round.
  var isLastAddress: Bool { turn % addresses == 0 }

  /// One of the attacker's addresses.
  func address(_ number: Int) -> ClientContext {
    let place = number % addresses
    // A network (/24) has 256 addresses, so more addresses need more networks.
    let (host, first) = (place / networks, place % networks)
    let network = first + networks * (host >> 8)
    let bytes = [10 &+ UInt8(network >> 16 & 255), UInt8(network >> 8 & 255), UInt8(network & 255), UInt8(host & 255)]
    return gateway.client(ClientAddress(bytes: bytes) ?? .unspecified).ofSimulation
  }

  /// Creates the accounts of users `0..<count`, and of those who are not attacked. Users who keep their device have
  /// signed in on it before.
  func makeAccounts(_ count: Int) async throws {
    for person in Array(0..<count) + others.map(\.person) { try await people.makeAccount(person) }
    for number in users.indices where users[number].keepsDevice {
      users[number].device = try await people.device(of: users[number].person)
    }
  }

  /// Advances the clock. Honest users sign in meanwhile.
  func wait(_ duration: Duration) async throws {
    let until = min(end, now + duration)
    if until > now { settled = (guesses, gateway.mailbox.count) }
    recordProgress()
    while let number = users.indices.min(by: { users[$0].next < users[$1].next }), users[number].next < until {
      gateway.clock.set(max(now, users[number].next))
      users[number].signIns += 1
      if try await !signsIn(&users[number]) { users[number].refused += 1 }
      await newcomers?.registers(on: gateway)
      users[number].next = users[number].next + users[number].pause
    }
    gateway.clock.set(max(now, until))
    recordProgress()
  }

  private func recordProgress() {
    timeline.record(guesses: guesses, messages: gateway.mailbox.count, after: now - start)
  }

  /// Ends the attack with the reason of the refusal. Honest users continue to the end.
  func finish(_ refusal: Refusal?) async throws {
    if ended == nil, !isOver {
      let detail = try await refusal.asyncFlatMap { try await gateway.audit.event($0.decision)?.detail }
      ended = AttackEnd(
        after: now - start, code: refusal?.code, limit: detail?["limit"], rule: detail?["rule"], at: detail?["at"])
    }
    if ContinuousClock.now < deadline { try await wait(end - now) }
  }

  /// Whether the limit on real time was reached before the end of virtual time.
  var ranOutOfTime: Bool { now < end }

  private func signsIn(_ user: inout LegitimateUser) async throws -> Bool {
    let client = try await people.client(
      gateway.client(user.home, device: user.device).ofSimulation, of: user.person, heldBy: "owner")
    guard case .success(let flow) = await gateway.create(target.ownersFlow, by: client),
      case .success = await gateway.begin(
        flow.id, providers: target.senders(in: target.ownersFlow), fields: target.fields(user.person), by: client)
    else { return false }
    let code = try code(of: user.person)
    if target.secret == nil, code.isEmpty { return false }
    guard
      case .success(let view) = await gateway.submit(
        flow.id, fields: target.answer(isRight: true, code: code, policy.code), by: client)
    else {
      return false
    }
    if user.keepsDevice { user.device = view.deviceToken ?? user.device }
    people.forget(user.person, heldBy: "owner")
    return true
  }

  /// The last code that was sent to the user; empty if none exists.
  private func code(of person: Int) throws -> String {
    target.secret == nil ? gateway.mailbox.latest(to: try target.identifier(person).value)?.code ?? "" : ""
  }

  /// The result of a guess.
  enum Guess: Equatable {
    /// The guess was checked. Another one may follow at once.
    case wrong
    /// Further guesses are refused for this duration. `compared`: whether this guess was checked.
    case refused(compared: Bool, Duration)
    /// The code has expired, or no further attempts are possible.
    case dead(Refusal?)
  }

  /// The attempts remaining in the step; nil if it is not open.
  func attemptsLeft(_ flow: FlowID, for person: Int, from client: ClientContext) async throws -> Int? {
    let client = try await people.client(client, of: person, heldBy: "attacker")
    return try? await gateway.view(flow, by: client).get().step?.attemptsLeft
  }

  /// Submits a code or secret that is certainly wrong.
  func guess(_ flow: FlowID, for person: Int, from client: ClientContext) async throws -> Guess {
    let left = try await attemptsLeft(flow, for: person, from: client)
    let client = try await people.client(client, of: person, heldBy: "attacker")
    let answer = await gateway.submit(
      flow, fields: target.answer(isRight: false, code: try code(of: person), policy.code), by: client)
    guard case .failure(let refusal) = answer else { return .dead(nil) }
    switch refusal.code {
    case let code where code.isWrongAnswer(to: target.descriptor):
      guesses += 1
      return .wrong
    case .tooManyAttempts:
      // The last attempt before a lock is checked, but answered like a lock.
      let compared = left == 1
      if compared { guesses += 1 }
      let wait = refusal.retryAfter ?? .seconds(1)
      if compared, person == Self.owner, !policy.limits.allSatisfy(\.lock.isEmpty) {
        lockedOut = lockedOut + min(wait, end - now)
        timeline.lock(from: now - start, to: min(now + wait, end) - start)
      }
      return .refused(compared: compared, wait)
    case .disabled where left == 1:
      guesses += 1
      return .dead(refusal)
    default: return .dead(refusal)
    }
  }

  /// Requests a code, and waits until that is possible.
  /// - Returns: nil if the time is over; the refusal if the user cannot be attacked any more.
  func openFlow(for person: Int) async throws -> Result<FlowID, Refusal>? {
    while !isOver {
      let client = try await people.client(nextAddress(), of: person, heldBy: "attacker")
      let flow: FlowView
      switch await gateway.create(target.flow, by: client) {
      case .success(let made): (flow, hoursRefused) = (made, 0)
      case .failure(let refusal):
        // `admit` of accounts.lua may admit at another hour of the day.
        guard case .policyReason = refusal.code, hoursRefused < 24 else { return .failure(refusal) }
        hoursRefused += 1
        try await wait(.seconds(3600))
        continue
      }
      switch await gateway.begin(
        flow.id, providers: target.senders(in: target.flow), fields: target.fields(person), by: client)
      {
      case .success: return .success(flow.id)
      case .failure(let refusal):
        guard let wait = refusal.retryAfter else { return .failure(refusal) }
        // Another address may be allowed at once, but the user's own limits apply to all addresses.
        try await self.wait(refusal.code == .rateLimited && !isLastAddress ? .zero : wait)
      }
    }
    return nil
  }
}

extension ClientContext {
  /// The client at the place of all clients of a simulation. Attackers choose the country and network of the users whom
  /// they want to lock out, so that their flood fills the same limits.
  var ofSimulation: ClientContext {
    var client = self
    client.place = ClientPlace(country: "US", asn: 64_500)
    return client
  }
}

extension Optional {
  fileprivate func asyncFlatMap<Result>(_ body: (Wrapped) async throws -> Result?) async rethrows -> Result? {
    guard let self else { return nil }
    return try await body(self)
  }
}
