import MoongateCore
import MoongateSDK

extension CaseRun {
  /// More attempts than any policy allows without a lock.
  private static let maxAttempts = 20_000
  /// More waits than any policy requires for one code.
  private static let maxWaits = 1_000

  /// Performs an act.
  /// - Returns: the outcome in words.
  mutating func perform(_ act: PolicyCase.Act) async throws -> String {
    switch act.kind {
    case .identifier(let kind, let text):
      identifiers[kind] = text
      current = kind
      return ""
    case .account(let setup):
      pending = (setup, act.location)
      return ""
    case .groups(let groups): return try await setGroups(groups, act)
    case .invited(let setup): return try await invite(setup, act)
    case .client(let setup):
      changeClient(setup)
      return ""
    case .clock(let moment, _): return try setClock(moment, act)
    case .token(let setup):
      token = setup
      return ""
    case .guarantee(let statement): return try check(statement, act)
    case .provider(let name):
      chosen = name
      return ""
    case .undeliverable(let name):
      gateway.mailbox.disconnect(name)
      return ""
    case .flow(let name):
      try await makeAccount(act)
      token = nil
      if generation.flows[name]?.needsSession(by: providers) ?? false { try await signIn() }
      try await begin(name)
      return outcomeText
    case .send(let untilSent):
      try await makeAccount(act)
      return try await send(act, untilSent) { run throws in try await run.begin() }
    case .resend(let untilSent):
      try await makeAccount(act)
      return try await send(act, untilSent) { run throws in
        guard let flow = run.flow else { return }
        run.take(await run.gateway.resend(flow.id, by: run.client))
      }
    case .wrong(let attempts): return try await wrong(attempts, act)
    case .right: return try await right(act)
    case .enter(let fields):
      try await makeAccount(act)
      return try await enter(fields)
    case .skip:
      if let flow { take(await gateway.skip(flow.id, by: client)) }
      return outcomeText
    case .request(let request): return try await ask(request, act)
    case .app(let setup): return try await signIn(setup, act)
    case .wait(let wait): return try await self.wait(wait, act)
    case .expect(let expected):
      let differences = try await differences(from: expected)
      if !differences.isEmpty {
        throw Stop.failure(CaseOutcome.Failure(location: act.location, sentence: nil, differences: differences))
      }
      return "as expected"
    }
  }

  /// Sets the client of the following requests.
  private mutating func changeClient(_ setup: PolicyCase.ClientSetup) {
    if let address = setup.address { (self.address, place) = (address, ClientPlace()) }
    if let country = setup.country { place.country = country }
    if let asn = setup.asn { place.asn = asn }
    if let userAgent = setup.userAgent { self.userAgent = userAgent }
    if let device = setup.device { (self.device, knowsDevice) = (device, false) }
    if let choice = setup.remember { remember = choice }
    if let isKnown = setup.isKnown { (device, knowsDevice) = (nil, isKnown) }
  }

  /// Passes the current step with the right answer.
  private mutating func right(_ act: PolicyCase.Act) async throws -> String {
    if let waiting = await waitingStep() { return try await decide(true, at: waiting, act) }
    if let provider = try await ceremonyStep() { return await answerByDevice(provider, isRight: true) }
    if let step = try await secretStep() {
      let name = step.provider.descriptor.name
      guard let secret = secrets[name] else {
        let isShort = [padProvider, passwordProvider].contains(name)
        let said = isShort ? "\(step.field) = \"…\"" : "factors = { \(name) = \"…\" }"
        throw fail(act, "the account has no \(step.field): add account { \(said) }")
      }
      await give([step.field: secret], to: step.provider)
      return outcomeText
    }
    if let provider = try await appStep() { return try await rightByApp(provider, act) }
    guard let code = await openStepCode() ?? lastCode else {
      var why = ""
      // `play` names the function that failed.
      if case .refusal(let refusal)? = answer, refusal.code != .policyError {
        why = ": the last answer was \(refusal.code.status) \(refusal.code.name)"
      }
      throw fail(act, "no code has been sent to \(recipient)\(why)")
    }
    await submit(code)
    return outcomeText
  }

  private mutating func begin(_ name: String) async throws {
    let result = await gateway.create(name, by: client.invited(by: invitation))
    invitation = nil
    if case .success(let view) = result { flow = (view.id, name) }
    take(result)
  }

  // MARK: accounts

  private func provider(for kind: IdentifierKind) -> (any CodeProvider)? {
    let able = providers.all.compactMap { $0 as? any CodeProvider }.filter {
      $0.descriptor.identifierKinds.contains(kind)
    }
    return able.first { generation.policies[$0.descriptor.name] != nil } ?? able.first
  }

  /// The typed identifier in canonical form.
  func identifier(_ kind: IdentifierKind, _ typed: String) -> Identifier? {
    guard let provider = provider(for: kind) else {
      // An account may have an identifier for which no provider is configured.
      let isWhole = kind == .email ? typed.contains("@") : typed.wholeMatch(of: /\+[0-9]{6,15}/) != nil
      return isWhole ? Identifier(kind: kind, value: typed.lowercased(), display: typed) : nil
    }
    return try? provider.readIdentifier(
      ProviderInput(fields: fields(of: provider.descriptor, [kind: typed]), defaultRegion: generation.gateway.region))
  }

  func fields(of descriptor: ProviderDescriptor, _ typed: [IdentifierKind: String]) -> [String: InputValue] {
    var fields: [String: InputValue] = [:]
    for field in descriptor.beginFields {
      guard let kind = descriptor.identifierKind(of: field) else { continue }
      fields[field.name] = typed[kind].map { .text($0) }
    }
    return fields
  }

  mutating func makeAccount(_ act: PolicyCase.Act) async throws {
    try await makePendingAccount()
    try await addKnownDevice(act)
  }

  private mutating func makePendingAccount() async throws {
    guard let (setup, location) = pending else { return }
    pending = nil
    guard setup.exists else { return }
    let act = PolicyCase.Act(kind: .account(setup), location: location)
    var typed = identifiers
    if let phone = setup.phone { typed[.phone] = phone }
    if let email = setup.email { typed[.email] = email }
    guard !typed.isEmpty else {
      throw fail(act, "an account needs an identifier: add phone \"…\" or email \"…\" before it")
    }
    let now = gateway.clock.now()
    let held = try typed.sorted { $0.key.rawValue < $1.key.rawValue }.map { kind, text in
      guard let identifier = identifier(kind, text) else {
        throw fail(act, "\"\(text)\" is not a valid \(kind.rawValue)")
      }
      let isVerified = kind == .phone ? setup.isPhoneVerified : setup.isEmailVerified
      return HeldIdentifier(identifier: identifier, verifiedAt: isVerified ? now - setup.age : nil)
    }
    let account = Account(
      id: "ac_" + Base64URL.encode(Array("case \(act.location.line)".utf8)), createdAt: now - setup.age,
      lastSeenAt: now - setup.idle,
      isLocked: setup.isLocked, identifiers: held)
    var changes: [Change] = [.createAccount(account)]
    secrets = setup.factors
    if let pin = setup.pin ?? (setup.hasPIN ? "739154" : nil), let padProvider { secrets[padProvider] = pin }
    if let password = setup.password, let passwordProvider { secrets[passwordProvider] = password }
    for (provider, secret) in secrets.sorted(by: { $0.key < $1.key }) {
      changes.append(
        .putProviderRecord(
          account: account.id, provider, sealed: try gateway.record(of: secret, for: provider, account: account.id)))
    }
    guard case .applied = try await gateway.store.apply(changes, at: now) else {
      throw fail(act, "this case already has an account with this identifier")
    }
    self.account = account.id
    session = nil
    knownDevice = nil
  }

  // MARK: codes

  private mutating func begin() async throws {
    guard let flow else { return }
    let view = await view()
    // A case cannot use a federated provider. Its error code `busy` would not explain that.
    let isElsewhere = { [providers] (name: ProviderName) in
      providers[name]?.descriptor.identifierKinds.contains(.federated) ?? false
    }
    let offered = view?.choices ?? []
    let choices = offered.allSatisfy(isElsewhere) ? offered : offered.filter { !isElsewhere($0) }
    let name =
      chosen ?? view?.step?.provider ?? choices.first { name in
        current.map { kind in providers[name]?.descriptor.identifierKinds.contains(kind) ?? false } ?? false
      } ?? choices.first
    let typed = name.flatMap { providers[$0] }.map { fields(of: $0.descriptor, identifiers) } ?? [:]
    take(await gateway.begin(flow.id, provider: name, fields: typed, by: client))
  }

  private mutating func send(_ act: PolicyCase.Act, _ untilSent: Bool, _ once: (inout CaseRun) async throws -> Void)
    async throws -> String
  {
    let before = gateway.clock.now()
    let messages = gateway.mailbox.count
    for _ in 0..<(untilSent ? Self.maxWaits : 1) {
      try checkTime()
      try await once(&self)
      guard untilSent, case .refusal(let refusal)? = answer else { break }
      if let wait = refusal.retryAfter {
        gateway.clock.advance(by: .seconds(wait.retryAfterSeconds))
      } else if [.flowExpired, .flowNotFound].contains(refusal.code), let flow {
        // The wait was longer than the lifetime of the flow, so a new flow is begun.
        try await begin(flow.name)
        if case .refusal? = answer { break }
        try await begin()
        if case .view? = answer { break }
      } else {
        break
      }
    }
    let waited = gateway.clock.now() - before
    if untilSent, gateway.mailbox.count == messages, case .refusal(let refusal)? = answer {
      throw fail(act, "no code can be sent, however long the case waits: \(refusal.code.status) \(refusal.code.name)")
    }
    return waited > .zero ? "\(outcomeText), after \(waited.asWritten)" : outcomeText
  }

  private var recipient: String { current.flatMap { identifiers[$0] } ?? "anyone" }

  /// The code that the open step sent to the identifier in the case, or else to one of the account.
  private func openStepCode() async -> String? {
    guard let name = await view()?.step?.provider, let descriptor = providers[name]?.descriptor else { return nil }
    let kinds = [current].compactMap(\.self) + IdentifierKind.allCases.filter { $0 != current }
    let named = kinds.filter(descriptor.identifierKinds.contains).compactMap { kind in
      identifiers[kind].flatMap { identifier(kind, $0) }
    }
    if let sent = named.lazy.compactMap({ [self] in gateway.mailbox.latest(to: $0.value)?.code }).first { return sent }
    return named.isEmpty ? gateway.mailbox.latest(by: name) : nil
  }

  private var lastCode: String? {
    // If no code was sent to the identifier that was named last, uses one that was sent to another identifier of the
    // account.
    let kinds = [current].compactMap(\.self) + IdentifierKind.allCases.filter { $0 != current }
    return kinds.lazy.compactMap { [self] kind in identifiers[kind].flatMap { identifier(kind, $0) } }
      .compactMap { [self] in gateway.mailbox.latest(to: $0.value)?.code }.first
  }

  private mutating func submit(_ code: String) async {
    guard let flow else { return }
    take(await gateway.submit(flow.id, fields: ["code": .text(code)], by: client))
  }

  /// A wrong code in the right format.
  private func wrongCode() async -> String {
    let name = await view()?.step?.provider
    // The codes of an authenticator app are defined by its provider, not by a policy.
    let said = name.flatMap { generation.policies[$0]?.code }.flatMap { $0 == .none ? nil : $0 }
    let rule = said ?? CodeRule(length: 6, alphabet: .digits, lifetime: .zero)
    let characters = rule.alphabet.characters
    var code = Array(await openStepCode() ?? lastCode ?? "")
    guard code.count == rule.length, let last = code.popLast(), let index = characters.firstIndex(of: last) else {
      return String(repeating: characters[0], count: rule.length)
    }
    return String(code + [characters[(index + 1) % characters.count]])
  }

  private mutating func wrong(_ attempts: PolicyCase.WrongAttempts, _ act: PolicyCase.Act) async throws -> String {
    if let waiting = await waitingStep() {
      guard attempts == .times(1) else {
        throw fail(act, "a waiting step can be denied only once: begin it again to deny it again")
      }
      return try await decide(false, at: waiting, act)
    }
    let secret = try await secretStep()
    if let provider = try await appStep(), await !openAppStep(provider) { return outcomeText }
    let ceremony = try await ceremonyStep()
    let code = await wrongCode()
    let asked = await dueProvider()?.descriptor
    let most = if case .times(let times) = attempts { times } else { Self.maxAttempts }
    var made = 0
    while made < most {
      try checkTime()
      if let ceremony {
        _ = await answerByDevice(ceremony, isRight: false)
      } else if let secret {
        await give([secret.field: wrongSecret(secret)], to: secret.provider)
      } else {
        await submit(code)
      }
      made += 1
      if attempts == .untilLocked {
        guard case .refusal(let refusal)? = answer else { break }
        if [.tooManyAttempts, .disabled].contains(refusal.code) {
          return "\(outcomeText), after \(made) wrong one\(made == 1 ? "" : "s")"
        }
        guard refusal.code.isWrongAnswer(to: asked) else {
          throw fail(act, "no lock after \(made) attempts, but \(refusal.code.status) \(refusal.code.name)")
        }
      }
    }
    if attempts == .untilLocked { throw fail(act, "no lock after \(made) wrong attempts: no limit on verify applies") }
    return outcomeText
  }

  // MARK: waiting

  private mutating func wait(_ wait: PolicyCase.Wait, _ act: PolicyCase.Act) async throws -> String {
    let now = gateway.clock.now()
    let until: Timestamp?
    switch wait {
    case .duration(let duration): until = now + duration
    case .untilUnlocked:
      if case .refusal(let refusal)? = answer, let wait = refusal.retryAfter {
        until = now + .seconds(wait.retryAfterSeconds)
      } else {
        until = await view()?.step?.lockedUntil
      }
      if until == nil { throw fail(act, "no lock applies") }
    case .untilResend: until = await view()?.step?.resendAt
    case .untilExpired:
      until = await view()?.step?.expiresAt
      if until == nil { throw fail(act, "there is no open code") }
    }
    guard let until, until > now else { return "" }
    gateway.clock.set(until)
    return (until - now).asWritten
  }

  // MARK: summaries

  /// The last answer in a few words.
  var outcomeText: String {
    switch answer {
    case nil: return ""
    case .refusal(let refusal):
      var words = ["\(refusal.code.status) \(refusal.code.name)"]
      if let left = refusal.attemptsLeft { words.append("\(left) left") }
      if let wait = refusal.retryAfter {
        words.append("retry after \(Duration.seconds(wait.retryAfterSeconds).asWritten)")
      }
      if let field = refusal.field { words.append("field \(field)") }
      if let reason = refusal.deliveryReason { words.append(reason.reason.rawValue) }
      if let provider = refusal.provider, refusal.deliveryReason == nil { words.append("\(provider) due") }
      return words.joined(separator: ", ")
    case .passed(let route): return "passes to \(route.upstreams.map(\.description).joined(separator: " or "))"
    case .signedIn(let app, let claims):
      return "signs in to \(app.id) with \(claims.map(\.name).joined(separator: ", "))"
    case .view(let view):
      var words = [view.status.rawValue]
      if let step = view.step { words.append("\(step.provider) \(step.retryAfter == nil ? "open" : "waits")") }
      if !view.choices.isEmpty { words.append("\(view.choices.map(\.rawValue).joined(separator: " or ")) due") }
      if view.status == .complete, let account = view.account {
        words.append(account.isNewUser ? "new account" : "known account")
      }
      return words.joined(separator: ", ")
    }
  }
}
