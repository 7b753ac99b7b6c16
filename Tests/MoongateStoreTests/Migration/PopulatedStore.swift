import MoongateCore
import MoongateSDK
import MoongateTesting

/// A store with rows in every table, and the checks for them after a move.
enum PopulatedStore {
  static let now = ManualClock.start
  private static let phone = Identifier(
    kind: .phone, value: "+919999999999", display: "+91 99999 99999", attributes: ["country": "IN"])
  private static let email = Identifier(
    kind: .email, value: "zoë@example.com", display: "zoë@example.com", attributes: ["domain": "example.com"])
  private static let provider = ProviderName(test: "pin")
  private static var group: GroupName { get throws { try GroupName(test: "a,b") } }
  private static let place = ProviderValuePlace(provider: provider, key: [1, 0, 255])
  static let timer = ResendTimer(key: [9, 9], intervals: [.seconds(60)], expiredAt: nil)
  static let tries = ResolvedLimit(
    provider: provider, name: "verify", key: .identifier, counter: [0, 255, 7], max: 5, window: .seconds(600),
    counts: .failures,
    lock: [.seconds(900)], disables: false)

  static let token = AccessToken(
    id: "tk_1", name: "ci", owner: nil, groups: [GroupName(rawValue: "a, b")].compactMap(\.self),
    networks: [AddressBlock("10.0.0.0/8")].compactMap(\.self),
    createdAt: now, expiresAt: nil, hash: AccessTokenHash(key: "k", bytes: [0, 255]))

  private static var invitation: Invitation {
    get throws {
      Invitation(
        id: "in_1", code: TokenHash(of: "invitation".utf8), identifier: phone, groups: [try group], createdAt: now,
        expiresAt: now + .seconds(600))
    }
  }

  /// - Parameter rounds: the number of rounds of `Crash`; a page has about 500 rows of a table.
  static func fill(_ store: any Store, rounds: Int = 20) async throws {
    for number in 0..<rounds { try await Crash.act(number, on: store) }
    let random = SeededRandom(seed: 9)
    let settled = ReservationID(from: random)
    _ = try await store.reserve(ReservationRequest(id: settled, now: now, limits: [tries], timer: timer))
    _ = try await store.reserve(
      ReservationRequest(id: ReservationID(from: random), now: now, limits: [tries], timer: nil))
    let account = Account(
      id: "ac_zoe", firstName: "Zoë", lastName: nil, createdAt: now, lastSeenAt: now,
      identifiers: [
        HeldIdentifier(identifier: phone, verifiedAt: now), HeldIdentifier(identifier: email, verifiedAt: nil),
      ])
    var event = AuditEvent(id: DecisionID(from: random), at: now, kind: .accountCreated)
    event.account = account.id
    _ = try await store.apply(
      [
        .settle(
          Settlement(
            reservation: settled, outcome: .failure, limits: [tries], timer: timer, now: now,
            attempts: [
              FailedAttempt(counter: tries.counter, at: now, account: "trace", identifier: nil, sealed: [3, 0])
            ])), .createAccount(account),
        .putProviderRecord(account: account.id, provider, sealed: [0, 1, 2, 0, 255]),
        .markImportedHash(account: account.id, provider, .bcrypt(rounds: 12)),
        .setDueChange(account: account.id, provider, .weak),
        .setGroupMembership(account: account.id, try group, true), .endSession(TokenHash(of: "se_0".utf8)),
        .audit(event),
        .putAccessToken(token), .putInvitation(try invitation),
      ], at: now)
    var step = PassedStep(provider: provider, at: now)
    step.siteSession = "s-1"
    let session = Session(
      id: "se_zoe", token: TokenHash(of: "zoe".utf8), account: account.id, createdAt: now,
      expiresAt: now + .seconds(600), idle: .seconds(600),
      lastSeenAt: now, passed: [step], userAgent: nil)
    let further = NewDomainToken(domain: "example.org", token: TokenHash(of: "elsewhere".utf8), session: session)
    _ = try await store.apply(
      [
        .putSession(session), .putDomainToken(further),
        .spendCode(TokenHash(of: "code".utf8), until: now + .seconds(60)),
      ], at: now)
    _ = try await store.apply(
      [
        .recordReset(account: account.id, provider), .trustDevice(device),
        .putSession(Self.session("before", of: account)),
      ], at: now)
    _ = try await store.apply(
      [.replaceSession(TokenHash(of: "before".utf8), by: Self.session("after", of: account))], at: now)
    _ = try await store.apply(
      [.putAppConnection(connection), .putAppGrant(grant), .putDeviceRequest(request, most: 10)], at: now)
    _ = try await store.putProviderValue(
      ProviderValue(place: place, sealed: [7, 0], expiresAt: now + .seconds(60)), ProviderValueRule(), at: now)
  }

  private static let device = TrustedDevice(
    id: "de_1", account: "ac_zoe", createdAt: now, lastSeenAt: now, userAgent: nil)

  private static let grant = AppGrant(
    id: "ag_1", app: "grafana", account: "ac_zoe", session: "se_zoe", sid: "sid", epoch: 0, isOffline: true,
    scopes: ["openid", "offline_access"],
    signIn: AppSignIn(
      nonce: nil, authTime: now, aal: 1, amr: ["pin"], passed: [PassedStep(provider: provider, at: now)]),
    createdAt: now, usedAt: now, refresh: TokenHash(of: "refresh".utf8), previous: TokenHash(of: "previous".utf8),
    refreshedAt: now, expiresAt: now + .seconds(600))
  private static let connection = AppConnection(
    account: "ac_zoe", app: "grafana", scopes: ["openid", "offline_access"], createdAt: now, usedAt: now, agreed: true)
  private static let request = DeviceRequest(
    device: TokenHash(of: "device".utf8), user: TokenHash(of: "letters".utf8), app: "tv", scopes: ["openid"],
    createdAt: now, expiresAt: now + .seconds(600), address: "192.0.2.1", polledAt: now,
    outcome: .allowed([0, 255]))

  /// A session whose token is replaced.
  private static func session(_ token: String, of account: Account) -> Session {
    Session(
      id: "se_renewed", token: TokenHash(of: token.utf8), account: account.id, createdAt: now,
      expiresAt: now + .seconds(600), idle: .seconds(600), lastSeenAt: now, passed: [], userAgent: nil)
  }

  /// Checks that everything is there and that the store can be used.
  /// - Returns: what is missing.
  static func missing(in store: any Store, rounds: Int = 20) async throws -> [String] {
    var missing = try await Crash.missing(Array(1..<rounds), kills: 1, in: store)
    let account = try await store.account(holding: phone)
    if account?.firstName != "Zoë" || account?.identifiers.map(\.identifier) != [phone, email] {
      missing.append("the account")
    }
    if try await store.memberships(of: "ac_zoe") != [GroupMember(group: try group, account: "ac_zoe", addedAt: now)] {
      missing.append("the membership")
    }
    if try await store.providerRecord(of: "ac_zoe", for: provider) != [0, 1, 2, 0, 255] {
      missing.append("the record")
    }
    if try await store.devices(of: "ac_zoe", at: now) != [device] { missing.append("the device") }
    if try await store.importedHashes(of: provider) != [.bcrypt(rounds: 12)] { missing.append("the imported hash") }
    if account?.dueChanges != [provider: .weak] { missing.append("the due change") }
    if try await store.accessTokens(of: nil) != [token] { missing.append("the token") }
    if try await store.invitation(TokenHash(of: "invitation".utf8)) != (try invitation) {
      missing.append("the invitation")
    }
    if try await store.events(limit: 10).map(\.account) != ["ac_zoe"] { missing.append("the event") }
    let live = try await store.appGrant(refresh: TokenHash(of: "previous".utf8), at: now)
    if live?.grant != grant || live?.session?.id != "se_zoe" || live?.account?.id != "ac_zoe" {
      missing.append("the grant of an app")
    }
    if try await store.appConnections(of: "ac_zoe") != [connection] { missing.append("the connected app") }
    if try await store.deviceRequest(device: request.device) != request { missing.append("the device's request") }
    if try await store.providerValue(at: place, at: now) != [7, 0] { missing.append("the provider's value") }
    if try await store.session(TokenHash(of: "elsewhere".utf8))?.session.domain?.name != "example.org" {
      missing.append("the further domain")
    }
    if try await store.sessions(openedBy: "s-1", limit: 9).map(\.id) != ["se_zoe"] {
      missing.append("the session at another site")
    }
    let spent = try await store.apply([.spendCode(TokenHash(of: "code".utf8), until: now + .seconds(60))], at: now)
    if spent != .conflict(.codeSpent) { missing.append("the spent code") }
    let ledgerState = try await store.ledgerState(LedgerQuery([tries], timer), at: now)
    if ledgerState.counters[0].settled != 1 || ledgerState.counters[0].pending != 1 { missing.append("the tries") }
    if try await store.failedAttempts(at: [tries.counter]).map(\.sealed) != [[3, 0]] {
      missing.append("the failed attempt")
    }
    if ledgerState.resendAt != now + .seconds(60) { missing.append("the timer") }
    // Numbering continues after the copied rows.
    let before = try await store.sessionChanges(after: .max).latest
    _ = try await store.apply([.endSession(TokenHash(of: "se_2".utf8))], at: now)
    let after = try await store.sessionChanges(after: before)
    if after.latest != before + 1 || after.tokens != [TokenHash(of: "se_2".utf8)] || after.isIncomplete {
      missing.append("the next change")
    }
    let event = AuditEvent(id: DecisionID(from: SeededRandom(seed: 10)), at: now, kind: .refused)
    _ = try await store.apply([.audit(event)], at: now)
    if try await store.events(limit: 10).map(\.kind) != [.refused, .accountCreated] {
      missing.append("the next event")
    }
    return missing
  }
}
