import MoongateCore
import MoongateSDK
import NIOCore

/// A session in the cache of one event loop, with its upstream headers ready to be copied.
final class CachedSession {
  let key: SessionKey
  let snapshot: SessionSnapshot
  private var known: SessionEntitlements?
  /// The last activity on this event loop. Another loop may have seen a later one.
  var lastSeenAt: Timestamp
  /// Until this time, uses need not be stored.
  var activityKnownUntil: Timestamp
  /// For an access token: the last client address. Uses from the same address are stored at intervals only.
  var lastAddress = ClientAddress.unspecified
  private var assertions: [Signed] = []
  /// The access tokens for services of routes with `bearer`.
  var bearers = BearerLines()
  /// `f.session` in a version of the generation.
  private var facts: (version: UInt64, session: SessionFacts)?

  /// The signed assertion for one audience and minute.
  private struct Signed {
    let audience: String
    let minute: Int64
    /// The version of the generation that computed its groups and claims.
    let version: UInt64
    let line: [UInt8]
    /// The complete forward-auth responses by `RouteIdentity.index`, created on first use.
    var answers: [(index: Int, response: ByteBuffer)] = []
  }

  init(key: SessionKey, snapshot: SessionSnapshot) {
    self.key = key
    self.snapshot = snapshot
    lastSeenAt = snapshot.session.lastSeenAt
    activityKnownUntil = Timestamp(milliseconds: .min)
  }

  /// Whether the session is valid according to this cache entry.
  func isLive(at now: Timestamp) -> Bool {
    now < snapshot.session.expiresAt && now < max(lastSeenAt, snapshot.session.lastSeenAt) + snapshot.session.idle
      && !snapshot.account.isLocked
  }

  /// The groups and claims in the plan's generation, evaluated on first use and for each new generation.
  ///
  /// A change of the account or session removes this object from the cache, and with it the result.
  func entitlements(in plan: GenerationPlan, at monotonic: NIODeadline) -> SessionEntitlements {
    if let known, known.isCurrent(in: plan, at: monotonic) { return known }
    let found = SessionEntitlements(of: snapshot, in: plan, at: monotonic)
    known = found
    return found
  }

  /// `f.session` for `decide`. While session and generation stay the same, only its age changes.
  func facts(_ entitlements: Entitlements, in plan: GenerationPlan, at now: Timestamp) -> SessionFacts {
    guard let facts, facts.version == plan.version else {
      let found = snapshot.sessionFacts(at: now, entitlements)
      facts = (plan.version, found)
      return found
    }
    var known = facts.session
    known.age = now - snapshot.session.createdAt
    return known
  }

  /// The `X-Moongate-Assertion: …` header line, signed once per audience and minute.
  func assertionLine(
    by keys: RotatingKeys, _ plan: GenerationPlan, _ entitlements: Entitlements, audience: String, now: Timestamp
  ) throws -> [UInt8] {
    assertions[try signed(by: keys, plan, entitlements, audience: audience, now: now)].line
  }

  /// The forward-auth "allow" response, created once per audience, minute and kind of identity headers: a complete head
  /// with its empty line.
  func forwardAnswer(
    by keys: RotatingKeys, _ plan: GenerationPlan, _ entitlements: Entitlements,
    for service: (audience: String, identity: RouteIdentity), now: Timestamp
  ) throws -> ByteBuffer {
    let index = service.identity.index
    let place = try signed(by: keys, plan, entitlements, audience: service.audience, now: now)
    if let known = assertions[place].answers.first(where: { $0.index == index }) { return known.response }
    let headers = IdentityHeaders(service.identity.settings, of: snapshot.account, entitlements)
    let made = headers.forwardAnswer(
      plan.identityHeaderNames, assertion: assertions[place].line, plan.securityLine)
    if assertions[place].answers.count >= 4 { assertions[place].answers.removeFirst() }
    assertions[place].answers.append((index, made))
    return made
  }

  private func signed(
    by keys: RotatingKeys, _ plan: GenerationPlan, _ entitlements: Entitlements, audience: String, now: Timestamp
  ) throws -> Int {
    let minute = now.seconds / 60
    // Attack: a reload removes a group, but a cached assertion of the same minute still contains it.
    if let known = assertions.firstIndex(where: {
      $0.minute == minute && $0.version == plan.version && $0.audience == audience
    }) {
      return known
    }
    let token = try AssertionSigner(keys.signer(at: now)).assertion(
      for: snapshot, entitlements, issuer: plan.issuer, audience: audience, now: now)
    let line = Array("X-Moongate-Assertion: \(token)\r\n".utf8)
    assertions.removeAll { $0.minute != minute || $0.version != plan.version }
    // A client that sends many Hosts causes more signing, not more memory.
    if assertions.count >= 4 { assertions.removeFirst() }
    assertions.append(Signed(audience: audience, minute: minute, version: plan.version, line: line))
    return assertions.count - 1
  }
}
