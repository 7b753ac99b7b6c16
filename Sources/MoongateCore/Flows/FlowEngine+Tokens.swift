import MoongateSDK

// Personal access tokens: tokens that users create for their own programs.

extension FlowEngine {
  /// The maximum number of tokens of one account, including expired ones that were not removed yet.
  package static let maxPersonalTokens = 50
  /// The allowed lifetime of a token: one day to 366 days.
  package static let tokenLifetimes: ClosedRange<Duration> = Duration.seconds(86_400)...Duration.seconds(366 * 86_400)

  /// The gateway's current time.
  package var now: Timestamp { clock.now() }

  /// The tokens of the session's account, sorted by name.
  package func personalTokens(client: ClientContext) async -> Result<[AccessToken], Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let own = try request.liveSession()
      let all = try await asking { () async throws(StoreFault) in try await store.accessTokens(of: own.account.id) }
      return all.filter { $0.owner?.epoch == own.account.epoch }
    }
  }

  /// Whether the session may create a token now, which needs a recent proof of something that the account holds.
  package func mayMakeToken(client: ClientContext) async -> Result<Void, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in _ = try tokenOwner(request) }
  }

  /// Creates a token for the session's account.
  /// - Parameter lifetime: within `tokenLifetimes`.
  /// - Returns: the token with its secret, which cannot be read again; 403 `denied` if no route accepts such tokens;
  ///   422 `invalid_input` with the field.
  package func makeToken(
    named text: String, for lifetime: Duration, client: ClientContext
  ) async -> Result<CreatedAccessToken, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let account = try tokenOwner(request)
      guard let name = PersonalTokenName(text) else {
        throw request.refusal(.invalidInput, detail: "Please enter a name of at most 60 characters.", field: "name")
      }
      guard Self.tokenLifetimes.contains(lifetime) else {
        throw request.refusal(.invalidInput, detail: "A token is valid for 1 to 366 days.", field: "expires")
      }
      let secret = AccessTokenSecret(from: random).text
      let token = AccessToken(
        id: AccessToken.newID(random), name: name.text, owner: AccountVersion(account), createdAt: request.now,
        expiresAt: request.now + lifetime,
        hash: keys.accessTokenHash(secret))
      let event = AuditEvent.about(token, .tokenCreated, at: request.now, random, address: request.client.address)
      let changes: [Change] = [
        .requireEpoch(AccountVersion(account)), .putAccessToken(token, most: Self.maxPersonalTokens), .audit(event),
      ]
      switch try await asking({ () async throws(StoreFault) in try await store.apply(changes, at: request.now) }) {
      case .applied: return CreatedAccessToken(token: token, secret: secret)
      case .conflict(.tokenNameTaken):
        throw request.refusal(.invalidInput, detail: "You already have a token with this name.", field: "name")
      case .conflict(.tooManyTokens):
        throw request.refusal(.denied, detail: "You already have \(Self.maxPersonalTokens) tokens. Remove one first.")
      case .conflict(let conflict): throw request.refusal(conflict)
      }
    }
  }

  /// Revokes a token of the session's account. Needs no recent proof, so that a lost token can be revoked at once.
  /// - Returns: 404 if the account has no such token, even if another account has it.
  package func revokeToken(_ id: String, client: ClientContext) async -> Result<Void, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let own = try request.liveSession()
      let all = try await asking { () async throws(StoreFault) in try await store.accessTokens(of: own.account.id) }
      guard let token = all.first(where: { $0.id == id }) else { throw request.refusal(.notFound) }
      let event = AuditEvent.about(token, .tokenRevoked, at: request.now, random, address: request.client.address)
      let result = try await asking { () async throws(StoreFault) in
        try await store.apply([.endAccessToken(id), .audit(event)], at: request.now)
      }
      guard case .applied = result else { throw request.refusal(.notFound) }
    }
  }

  /// The account that may create a token.
  ///
  /// Attack: a stolen session creates a token and keeps access for a year.
  private func tokenOwner(_ request: RequestContext) throws(FlowError) -> Account {
    _ = try request.liveSession()
    guard request.generation.takesPersonalTokens else {
      throw request.refusal(.denied, detail: "No service here accepts personal access tokens.")
    }
    return try checks.accountForChange(request)
  }
}

extension PolicyGeneration {
  /// The routes that accept personal access tokens.
  package var personalTokenRoutes: [Route] { routes.routes.filter { $0.tokens?.takesPersonal ?? false } }

  /// Whether any route accepts personal access tokens.
  package var takesPersonalTokens: Bool { routes.routes.contains { $0.tokens?.takesPersonal ?? false } }
}
