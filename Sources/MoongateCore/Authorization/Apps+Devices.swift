import MoongateSDK

// Devices without a browser (RFC 8628).

/// The letters that a user types: 8 of 20, which are 34.5 bits. There are no vowels, so that no words arise, and no two
/// of them look alike (RFC 8628 section 6.1).
///
/// Attack: someone types letters until they hit a request of somebody else. With a thousand requests open, 60
/// attempts in an hour, as policies/token.lua allows an address, hit one with a chance of 1 to 430,000.
enum DeviceLetters {
  static let count = 8
  static let alphabet = Array("BCDFGHJKLMNPQRSTVWXZ")

  static func make(_ random: any RandomSource) -> String {
    String((0..<count).map { _ in alphabet[Int(random.uniform(below: UInt32(alphabet.count)))] })
  }

  /// The letters that a user typed, in either case and with any hyphens and spaces; nil if they are not eight of ours.
  static func read(_ typed: String) -> String? {
    guard typed.utf8.count <= 64 else { return nil }
    let letters = typed.uppercased().filter { $0 != "-" && !$0.isWhitespace }
    return letters.count == count && letters.allSatisfy(alphabet.contains) ? letters : nil
  }

  /// For display: `XXXX-XXXX`.
  static func shown(_ letters: String) -> String { "\(letters.prefix(count / 2))-\(letters.suffix(count / 2))" }
}

extension Apps {
  private static let deviceLifetime: Duration = .seconds(600)
  /// The maximum number of open requests of one app from one address, or from one /64 of IPv6.
  private static let mostDeviceRequests = 1000
  /// The longest time that a device must wait between two polls, in seconds.
  private static let longestInterval = 60
  /// What attempts at letters are counted by. No app has this ID.
  private static let letters = "(device letters)"

  private func hash(ofLetters letters: String) -> TokenHash { TokenHash(of: keys.appName("device", letters).utf8) }

  /// Begins a request of a device.
  package func beginDevice(_ app: App, scopes: [String], _ call: AppCall) async throws(AppFault) -> DeviceCodes {
    try demand(.deviceCode, of: app)
    let now = clock.now()
    let device = Base64URL.encode(random.bytes(32))
    let letters = DeviceLetters.make(random)
    let request = DeviceRequest(
      device: TokenHash(of: device.utf8), user: hash(ofLetters: letters), app: app.id, scopes: app.permitted(scopes),
      createdAt: now, expiresAt: now + Self.deviceLifetime, address: Self.network(of: call.client.address))
    let result = try await asking { () async throws(StoreFault) in
      try await store.apply([.putDeviceRequest(request, most: Self.mostDeviceRequests)], at: now)
    }
    guard case .applied = result else {
      throw .oauth(OAuthError("temporarily_unavailable", "The app has too many open requests.", status: 503))
    }
    return DeviceCodes(
      device: SecretText(device), user: SecretText(DeviceLetters.shown(letters)), expiresIn: Self.deviceLifetime,
      interval: .seconds(request.interval))
  }

  /// What requests are counted by, and what the page shows.
  ///
  /// Attack: an attacker with IPv6 begins the most requests from each of their 2^64 addresses.
  private static func network(of address: ClientAddress) -> String {
    address.bytes.count == 4 ? address.description : "\(ClientAddress.text(address.countingKey))/64"
  }

  /// The request whose letters a user typed. Wrong ones are counted by the client's address.
  /// - Returns: nil if there is none, or if the address has tried too often.
  package func deviceRequest(typed: String, _ call: AppCall) async throws(StoreFault) -> DeviceRequest? {
    let address = call.client.address
    guard try await limiter.lockedUntil(address, client: Self.letters) == nil else { return nil }
    if let letters = DeviceLetters.read(typed),
      let request = try await store.deviceRequest(user: hash(ofLetters: letters), at: clock.now()),
      call.generation.apps[request.app] != nil
    {
      return request
    }
    _ = try await limiter.charge(address, client: Self.letters)
    return nil
  }

  /// Decides about a request of a device.
  ///
  /// Attack: a caller who asks a victim to type letters. The page therefore says which app asked and from where, and
  /// the victim has to agree.
  /// - Parameter session: that of the user who allows it; nil: the user denies it.
  /// - Throws: `AppFault.oauth` if the session may not sign in to the app, or if the request has ended.
  package func decideDevice(
    _ request: DeviceRequest, _ app: App, allowedBy session: SessionSnapshot?, _ call: AppCall
  ) async throws(AppFault) {
    let now = clock.now()
    guard request.app == app.id, now < request.expiresAt else { throw Self.invalid("The request has ended.") }
    var changes: [Change] = []
    if let session {
      guard session.isLive(at: now) else { throw .oauth(OAuthError("login_required", "The user must sign in.")) }
      let verdict = verdict(app, session, call)
      guard verdict.isAllowed else {
        refused(app, verdict, account: session.account.id, call)
        throw .oauth(OAuthError("access_denied", "The user may not sign in to this app."))
      }
      // Before the code, which must not be older than the connection.
      let (connecting, since) = try await connecting(app, request.scopes, of: session.account.id, agreed: true, call)
      let code = code(
        for: Grant(device: request), AppSignIn(nonce: nil, session, level: nil, self, call), session, since: since,
        lifetime: request.expiresAt - now)
      let sealed: [UInt8]
      do { sealed = try keys.stored(code) } catch { throw .store(StoreFault("a code could not be sealed")) }
      changes = [
        .requireEpoch(AccountVersion(session.account)), .decideDevice(user: request.user, .allowed(sealed)),
        .audit(
          event(
            .appAuthorized, app.id, session.account.id, call,
            ["grant": code.grantID, "scopes": request.scopes.joined(separator: " "), "device": request.address])),
      ]
      changes += connecting
    } else {
      changes = [.decideDevice(user: request.user, .denied)]
    }
    try await apply(changes, at: now)
  }

  /// Answers a device that asks for its tokens (RFC 8628 section 3.4).
  package func redeemDevice(_ code: String, by app: App, _ call: AppCall) async throws(AppFault) -> AppTokens {
    try demand(.deviceCode, of: app)
    let now = clock.now()
    let device = TokenHash(of: code.utf8)
    let request = try await asking { () async throws(StoreFault) in try await store.deviceRequest(device: device) }
    // Attack: the device code of another app.
    guard let request, request.app == app.id else { throw try await wrong("The device code is invalid.", app, call) }
    guard now < request.expiresAt else { throw .oauth(OAuthError("expired_token", "The device code has expired.")) }
    switch request.outcome {
    case .pending: throw try await polled(request, at: now)
    case .denied:
      _ = try await asking { () async throws(StoreFault) in try await store.apply([.takeDevice(device)], at: now) }
      throw .oauth(OAuthError("access_denied", "The user has refused."))
    case .allowed(let sealed):
      guard let opened = keys.storedCode(sealed), opened.grant.client == app.id else {
        throw Self.invalid("The device code is invalid.")
      }
      return try await take(opened, .takeDevice(device), app, call)
    }
  }

  private func polled(_ request: DeviceRequest, at now: Timestamp) async throws(AppFault) -> AppFault {
    let isEarly = request.polledAt.map { now < $0 + .seconds(request.interval) } ?? false
    let interval = isEarly ? min(request.interval + 5, Self.longestInterval) : request.interval
    try await apply([.pollDevice(request.device, at: now, interval: interval)], at: now)
    return .oauth(
      isEarly
        ? OAuthError("slow_down", "The device asks too often.")
        : OAuthError("authorization_pending", "The user has not decided yet."))
  }
}
