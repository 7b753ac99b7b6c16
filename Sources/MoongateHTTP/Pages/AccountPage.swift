import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/account`: the user's profile, sign-in methods, factors, sessions and tokens.
struct AccountPage: Sendable {
  let driver: FlowDriver
  let ending: SessionEnding
  let pages: PageRenderer

  /// The values of `done=`, with which other pages return here.
  private static let done: Set<String> = [
    "add_email", "ended", "ended_elsewhere", "confirmed", "renamed", "disconnected", "gone", "token_revoked",
    "device_removed", "app_disconnected",
  ]

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, PagePath.account) { exchange throws(Refusal) in
        guard let found = try await driver.session(exchange) else {
          return try exchange.redirectToSignIn(returnTo: PagePath.account)
        }
        return try await show(found, exchange)
      },
      Endpoint(.page, .post, PagePath.account) { exchange throws(Refusal) in
        let form = try await exchange.form()
        guard let own = try await driver.session(exchange)?.session else {
          // Attack: a thief had the session's token replaced, and its owner is told of a sign-out that ends nothing.
          if ["everywhere", "elsewhere"].contains(form["action"]), let token = exchange.credentials.session {
            _ = try await exchange.mappingFaults { () async throws(StoreFault) in
              try await ending.end(replaced: token, by: exchange.client.address)
            }
          }
          return try exchange.redirectToSignIn(returnTo: PagePath.account)
        }
        switch form["action"] {
        case "everywhere", "elsewhere":
          let isEverywhere = form["action"] == "everywhere"
          let client = try await driver.caller(exchange)
          try await driver.engine.signOutEverywhere(keepsOwn: !isEverywhere, client: client).get()
          return isEverywhere
            ? LogoutPage.leave(to: PagePath.signIn, exchange)
            : exchange.redirect(to: PagePath.account(done: "ended_elsewhere"))
        case "rename": return try await rename(form, exchange)
        case "connect": return try await connect(form, exchange)
        case "disconnect": return try await disconnect(form, exchange)
        case "remove_device": return try await removeDevice(form, exchange)
        case "revoke_token": return try await revokeToken(form, exchange)
        default: break
        }
        let all = try await exchange.mappingFaults { () async throws(StoreFault) in
          try await driver.sessions.sessions(of: own.account)
        }
        // Only among the user's own sessions.
        for session in all where session.id == form["session"] {
          try await exchange.mappingFaults { () async throws(StoreFault) in
            try await ending.end(session, by: exchange.client.address)
          }
        }
        let isOver = form["session"] == own.id
        guard isOver else { return exchange.redirect(to: PagePath.account(done: "ended")) }
        return LogoutPage.leave(to: PagePath.signIn, exchange)
      },
    ]
  }

  /// Changes the user's name.
  private func rename(_ form: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    let client = try await driver.caller(exchange)
    let (first, last) = (form["first_name"] ?? "", form["last_name"])
    guard case .failure(let refusal) = await driver.engine.renameAccount(first: first, last: last, client: client)
    else {
      return exchange.redirect(to: PagePath.account(done: "renamed"))
    }
    guard [.invalidInput, .rateLimited].contains(refusal.code), let own = try await driver.session(exchange) else {
      throw refusal
    }
    exchange.log(refusal)
    return try await show(own, exchange, refusedName: RefusedName(first: first, last: last, refusal: refusal))
  }

  /// No longer trusts a device. One that is not trusted any more is not an error. Users without a recent proof are
  /// first redirected to the step-up, which returns here.
  private func removeDevice(_ form: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    let client = try await driver.caller(exchange)
    if case .failure(let refusal) = await driver.engine.removeDevice(form["device"] ?? "", client: client),
      refusal.code != .notFound
    {
      guard let address = StepUpRedirect.address(after: refusal, backTo: PagePath.account(done: "confirmed")) else {
        throw refusal
      }
      return exchange.redirect(to: address)
    }
    return exchange.redirect(to: PagePath.account(done: "device_removed"))
  }

  /// A name that was refused.
  private struct RefusedName {
    let first: String
    let last: String?
    let refusal: Refusal
  }

  /// Redirects to a site whose identity is added to the account. Users without a recent proof are first redirected to
  /// the step-up, which returns here.
  private func connect(_ form: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    guard let site = form["provider"].flatMap(ProviderName.init(rawValue:)).flatMap(exchange.page(of:)),
      let flow = exchange.generation.flow(connecting: site.name)?.name
    else { throw exchange.refusal(.badRequest) }
    let outcome = await PageFlow(driver: driver).begin(
      flow, nil, site.name.rawValue, [:], returnTo: PagePath.account(done: flow), exchange)
    switch outcome.result {
    case .success(let begun): return pages.continueFlow(on: begun.view, outcome.cookies, exchange)
    case .failure(let refusal):
      if let address = StepUpRedirect.address(after: refusal, backTo: PagePath.account(done: "confirmed")) {
        return exchange.redirect(to: address)
      }
      guard let own = try await driver.session(exchange) else { throw refusal }
      exchange.log(refusal)
      return try await show(own, exchange, refused: (refusal, sentence(of: refusal, at: site, exchange)))
    }
  }

  /// Why a site was not connected.
  private func sentence(of refusal: Refusal, at site: ProviderPage, _ exchange: Exchange) -> String {
    let words = pages.words(exchange)
    return [.busy, .storeUnavailable, .policyError, .oauthFailed].contains(refusal.code)
      ? site.siteFailed(words) : words.sentence(of: refusal)
  }

  /// The message for a user who returns from a site that was not connected; nil for an unknown value.
  private func refused(_ query: FormFields, _ words: Words, _ exchange: Exchange) -> String? {
    guard let name = query["refused"],
      let site = query["by"].flatMap(ProviderName.init(rawValue:)).flatMap(exchange.page(of:))
    else { return nil }
    if name == RefusalCode.alreadyRegistered.name { return words.text("site_taken", ["site": site.shortName(words)]) }
    return site.sentence(ofRefused: name, words)
  }

  /// Removes the identities at a site. Users without a recent proof are first redirected to the step-up, which returns
  /// here.
  private func disconnect(_ form: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    guard let provider = form["provider"].flatMap(ProviderName.init(rawValue:)) else {
      throw exchange.refusal(.badRequest)
    }
    switch await driver.engine.disconnect(provider, client: try await driver.caller(exchange)) {
    case .success(let session):
      let cookies = session.flatMap { session in
        session.token.map { GatewayCookies(exchange.gateway).signIn($0, for: session.cookieLifetime) }
      }
      return exchange.redirect(to: PagePath.account(done: "disconnected"), cookies ?? [])
    case .failure(let refusal):
      guard let address = StepUpRedirect.address(after: refusal, backTo: PagePath.account(done: "confirmed")) else {
        throw refusal
      }
      return exchange.redirect(to: address)
    }
  }

  private func show(
    _ found: SessionSnapshot, _ exchange: Exchange, refusedName: RefusedName? = nil,
    refused: (refusal: Refusal, sentence: String)? = nil
  ) async throws(Refusal) -> Response {
    let words = pages.words(exchange)
    let account = found.account
    let query = try exchange.query()
    let sessions = try await exchange.mappingFaults { () async throws(StoreFault) in
      try await driver.sessions.sessions(of: account.id)
    }
    let email = account.identifier(.email)
    let done = query["done"].flatMap { name -> String? in
      guard Self.done.contains(name) else { return confirmation(of: name, words, exchange) }
      return words["done_" + (name == "add_email" ? "change_email" : name)]
    }
    let verifying = exchange.generation.flow(for: .verify(.email))?.name
    let name = [account.firstName, account.lastName].compactMap { $0 }.joined(separator: " ")
    let called = name.isEmpty ? account.identifiers.lazy.compactMap(\.identifier.shown).first ?? "" : name
    // The page works without them.
    let holdings = (try? await driver.engine.holdings(client: try await driver.caller(exchange)).get()) ?? [:]
    let trusted = try await driver.engine.trustedDevices(client: try await driver.caller(exchange)).get()
    let connected = try await driver.engine.connectedApps(client: try await driver.caller(exchange)).get()
    let factors = factorRows(account, holdings, words, exchange)
    let model = AccountModel(
      notice: refusedName == nil && refused == nil ? done : nil,
      refusal: refused?.sentence ?? self.refused(query, words, exchange),
      back: exchange.targets.accept(query["return_to"]).map(NextPage.back) ?? exchange.generation.flow(for: .signIn)?
        .next
        .returning ?? "/",
      backLabel: words.text("back_to", ["service": exchange.gateway.brand.name ?? exchange.gateway.service]),
      initial: called.first { $0.isLetter }.map { String($0).uppercased() }, called: called,
      isUnverified: email != nil && email?.verifiedAt == nil && verifying.map { offers($0, exchange) } ?? false,
      verify: verifying.map { Self.returningAddress(path(of: $0, exchange), $0) } ?? "",
      name: nameForm(account, shown: name, refusedName, words),
      rows: signInRows(account, words, exchange), factors: factors, hasFactors: !factors.isEmpty,
      language: words.language,
      places: sessions.map { place($0, isCurrent: $0.id == found.session.id, words) }, hasOthers: sessions.count > 1,
      devices: trusted.devices.map { row($0, isCurrent: $0.id == trusted.current, words) },
      hasDevices: !trusted.devices.isEmpty,
      apps: connected.map { app($0, words, exchange) }, hasApps: !connected.isEmpty,
      tokens: await tokens(words, exchange))
    return pages.page(
      model, title: words["account_page"], refusal: refusedName?.refusal ?? refused?.refusal,
      at: refusedName == nil && refused == nil ? nil : PagePath.account, exchange)
  }

  private func nameForm(_ account: Account, shown: String, _ refusedName: RefusedName?, _ words: Words)
    -> AccountModel.NameForm
  {
    AccountModel.NameForm(
      first: refusedName?.first ?? account.firstName, last: refusedName.map { $0.last ?? "" } ?? account.lastName,
      shown: shown.isEmpty ? nil : shown,
      label: words[shown.isEmpty ? "add" : "change"], isOpen: refusedName != nil,
      problem: refusedName.map { words.sentence(of: $0.refusal) },
      firstIsInvalid: refusedName?.refusal.field == "first_name",
      lastIsInvalid: refusedName?.refusal.field == "last_name")
  }

  /// The message about a completed flow that returns here; nil for an unknown flow.
  private func confirmation(of flow: String, _ words: Words, _ exchange: Exchange) -> String? {
    let said: String
    var endsOthers = true
    switch exchange.generation.purpose(of: flow) {
    case .verify(let kind): (said, endsOthers) = (words["done_verify_\(kind.rawValue)"], false)
    case .join(.federated):
      guard let site = exchange.offered(first: flow).first else { return nil }
      (said, endsOthers) = (words.text("done_join_site", ["site": site.shortName(words)]), false)
    case .join(let kind): (said, endsOthers) = (words["done_join_\(kind.rawValue)"], false)
    case .change(let kind): said = words["done_change_\(kind.rawValue)"]
    case .factor(_, .unlock): return nil
    case .factor(let provider, let operation):
      guard let page = ProviderPage(provider, exchange.providers) else { return nil }
      if operation == .recover {
        return words.text("done_change", ["name": page.shortName(words)]) + " " + words["others_signed_out"]
      }
      endsOthers = operation != .set
      let word =
        switch operation {
        // If there are several items, a reset removes the lost one.
        case .reset where page.keepsSeveral: "done_disable"
        case .set, .reset: "done_set"
        case .disable: "done_disable"
        default: "done_change"
        }
      said = words.withTranslations(of: page.descriptor.words).text(word, ["name": page.title(words)])
    default: return nil
    }
    return endsOthers ? said + " " + words["others_signed_out"] : said
  }
}
