import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/account`: the user's profile, sign-in methods, factors, sessions and tokens.
struct AccountPage: Sendable {
  let driver: FlowDriver
  let ending: SessionEnding
  let pages: PageRenderer

  struct Link: Decodable {
    let label: String
    let address: String
    /// For screen readers: the label together with the row's name.
    let name: String
  }

  struct Row: Decodable {
    let name: String
    let value: String?
    let badge: String?
    let isGood: Bool
    let links: [Link]
    /// The row's button, such as the one that disconnects a provider.
    var button: Button?
    /// The items that the provider stores.
    var items: [Item] = []
    var hasItems: Bool = false
  }

  /// One of several items that a provider stores for the account, such as a passkey.
  struct Item: Decodable {
    let name: String
    let details: [String]
    /// When it was added, and when it was last used.
    let added: String?
    let used: String?
    /// Links to the flows that change or remove this item.
    let links: [Link]
  }

  struct Button: Decodable {
    /// The action: `connect` or `disconnect`.
    let action: String
    let label: String
    let value: String
    /// For screen readers: the label together with the row's name.
    let name: String
  }

  /// The form for the user's names.
  struct NameForm: Decodable {
    let first: String?
    let last: String?
    /// The full name, as it is shown.
    let shown: String?
    let label: String
    let isOpen: Bool
    let problem: String?
    let firstIsInvalid: Bool
    let lastIsInvalid: Bool
  }

  struct Place: Decodable {
    let id: String
    let device: String
    let since: String
    let seen: String
    let isCurrent: Bool
    let isPhone: Bool
    let label: String
  }

  struct Model: PageModel {
    static let template = PageTemplate.account
    let notice: String?
    /// Why the requested change was not made.
    let refusal: String?
    /// The service that the user came from.
    let back: String
    let backLabel: String
    /// The first letter of the user's name; nil if only a number is known.
    let initial: String?
    /// The user's display name.
    let called: String
    let isUnverified: Bool
    let verify: String
    let name: NameForm
    /// The user's sign-in methods.
    let rows: [Row]
    /// The factors that protect the account.
    let factors: [Row]
    let hasFactors: Bool
    let language: String
    let places: [Place]
    /// Whether the account has other sessions.
    let hasOthers: Bool
    /// The user's personal tokens; nil if no route accepts personal tokens.
    let tokens: Tokens?
    var stressesSupport = false
  }

  /// The values of `done=`, with which other pages return here.
  private static let done: Set<String> = [
    "add_email", "ended", "ended_elsewhere", "confirmed", "renamed", "disconnected", "gone", "token_revoked",
  ]

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, "/auth/account") { exchange throws(Refusal) in
        guard let found = try await driver.session(exchange) else {
          return exchange.redirect(to: FormFields.address("/auth/login", ["return_to": "/auth/account"]))
        }
        return try await show(found, exchange)
      },
      Endpoint(.page, .post, "/auth/account") { exchange throws(Refusal) in
        let form = try await exchange.form()
        guard let own = try await driver.session(exchange)?.session else {
          return exchange.redirect(to: FormFields.address("/auth/login", ["return_to": "/auth/account"]))
        }
        switch form["action"] {
        case "everywhere", "elsewhere":
          let isEverywhere = form["action"] == "everywhere"
          try await exchange.asking { () async throws(StoreFault) in
            try await ending.endAll(of: own.account, except: isEverywhere ? nil : own, by: exchange.client.address)
          }
          return isEverywhere
            ? LogoutPage.leave(to: "/auth/login", exchange) : exchange.redirect(to: "/auth/account?done=ended_elsewhere")
        case "rename": return try await rename(form, exchange)
        case "connect": return try await connect(form, exchange)
        case "disconnect": return try await disconnect(form, exchange)
        case "revoke_token": return try await revokeToken(form, exchange)
        default: break
        }
        let all = try await exchange.asking { () async throws(StoreFault) in
          try await driver.sessions.sessions(of: own.account)
        }
        // Only among the user's own sessions.
        for session in all where session.id == form["session"] {
          try await exchange.asking { () async throws(StoreFault) in
            try await ending.end(session, by: exchange.client.address)
          }
        }
        let isOver = form["session"] == own.id
        guard isOver else { return exchange.redirect(to: "/auth/account?done=ended") }
        return LogoutPage.leave(to: "/auth/login", exchange)
      },
    ]
  }

  /// Changes the user's name.
  private func rename(_ form: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    let client = try await driver.caller(exchange)
    let (first, last) = (form["first_name"] ?? "", form["last_name"])
    guard case .failure(let refusal) = await driver.engine.renameAccount(first: first, last: last, client: client)
    else {
      return exchange.redirect(to: "/auth/account?done=renamed")
    }
    guard [.invalidInput, .rateLimited].contains(refusal.code), let own = try await driver.session(exchange) else {
      throw refusal
    }
    exchange.note(refusal)
    var response = try await show(own, exchange, misnamed: Misnamed(first: first, last: last, refusal: refusal))
    response.addRefusalHeaders(refusal)
    return response
  }

  /// A name that was refused.
  private struct Misnamed {
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
      flow, nil, site.name.rawValue, [:], returnTo: "/auth/account?done=\(flow)", exchange)
    switch outcome.result {
    case .success(let begun): return pages.lead(on: begun.view, outcome.cookies, exchange)
    case .failure(let refusal):
      if let address = StepUpRedirect.address(after: refusal, backTo: "/auth/account?done=confirmed") {
        return exchange.redirect(to: address)
      }
      guard let own = try await driver.session(exchange) else { throw refusal }
      exchange.note(refusal)
      var response = try await show(own, exchange, refused: (refusal.code, sentence(of: refusal, at: site, exchange)))
      response.addRefusalHeaders(refusal)
      return response
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
    case .success(let token):
      return exchange.redirect(
        to: "/auth/account?done=disconnected", token.map(GatewayCookies(exchange.gateway).signIn) ?? [])
    case .failure(let refusal):
      guard let address = StepUpRedirect.address(after: refusal, backTo: "/auth/account?done=confirmed") else {
        throw refusal
      }
      return exchange.redirect(to: address)
    }
  }

  private func show(
    _ found: SessionSnapshot, _ exchange: Exchange, misnamed: Misnamed? = nil,
    refused: (code: RefusalCode, sentence: String)? = nil
  ) async throws(Refusal) -> Response {
    let words = pages.words(exchange)
    let account = found.account
    let query = try exchange.query()
    let sessions = try await exchange.asking { () async throws(StoreFault) in
      try await driver.sessions.sessions(of: account.id)
    }
    let email = account.identifier(.email)
    let done = query["done"].flatMap { name -> String? in
      guard Self.done.contains(name) else { return whatWasDone(by: name, words, exchange) }
      return words["done_" + (name == "add_email" ? "change_email" : name)]
    }
    let verifying = exchange.generation.flow(for: .verify(.email))?.name
    let name = [account.firstName, account.lastName].compactMap { $0 }.joined(separator: " ")
    let called = name.isEmpty ? account.identifiers.lazy.compactMap(\.identifier.shown).first ?? "" : name
    // The page works without them.
    let holdings = (try? await driver.engine.holdings(client: try await driver.caller(exchange)).get()) ?? [:]
    let factors = factorRows(account, holdings, words, exchange)
    let model = Model(
      notice: misnamed == nil && refused == nil ? done : nil,
      refusal: refused?.sentence ?? self.refused(query, words, exchange),
      back: exchange.targets.accept(query["return_to"]).map(NextPage.back) ?? exchange.generation.flows["login"]?.next
        .returning ?? "/",
      backLabel: words.text("back_to", ["service": exchange.gateway.brand.name ?? exchange.gateway.service]),
      initial: called.first { $0.isLetter }.map { String($0).uppercased() }, called: called,
      isUnverified: email != nil && email?.verifiedAt == nil && verifying.map { offers($0, exchange) } ?? false,
      verify: verifying.map { Self.way(path(of: $0, exchange), $0) } ?? "",
      name: nameForm(account, shown: name, misnamed, words),
      rows: signInRows(account, words, exchange), factors: factors, hasFactors: !factors.isEmpty,
      language: words.language,
      places: sessions.map { place($0, isCurrent: $0.id == found.session.id, words) }, hasOthers: sessions.count > 1,
      tokens: await tokens(words, exchange))
    return pages.page(
      model, title: words["account_page"], status: (misnamed?.refusal.code ?? refused?.code)?.httpStatus ?? .ok,
      at: misnamed == nil && refused == nil ? nil : "/auth/account", exchange)
  }

  private func nameForm(_ account: Account, shown: String, _ misnamed: Misnamed?, _ words: Words) -> NameForm {
    NameForm(
      first: misnamed?.first ?? account.firstName, last: misnamed.map { $0.last ?? "" } ?? account.lastName,
      shown: shown.isEmpty ? nil : shown,
      label: words[shown.isEmpty ? "add" : "change"], isOpen: misnamed != nil,
      problem: misnamed.map { words.sentence(of: $0.refusal) },
      firstIsInvalid: misnamed?.refusal.field == "first_name", lastIsInvalid: misnamed?.refusal.field == "last_name")
  }

  /// The message about a completed flow that returns here; nil for an unknown flow.
  private func whatWasDone(by flow: String, _ words: Words, _ exchange: Exchange) -> String? {
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
      said = words.speaking(page.descriptor.words).text(word, ["name": page.title(words)])
    default: return nil
    }
    return endsOthers ? said + " " + words["others_signed_out"] : said
  }

  private func offers(_ flow: String, _ exchange: Exchange) -> Bool {
    exchange.generation.flows[flow]?.steps.first?.choices.contains { exchange.generation.policies[$0] != nil } ?? false
  }

  /// A link to a page that returns here.
  /// - Parameter done: the value of `done=` on return.
  private static func way(_ path: String, _ flow: String, done: String? = nil) -> String {
    FormFields.address(path, ["flow": flow, "return_to": "/auth/account?done=\(done ?? flow)"])
  }

  /// The user's sign-in methods: phone number, email address, password and other sites.
  private func signInRows(_ account: Account, _ words: Words, _ exchange: Exchange) -> [Row] {
    let link = { (label: String, purpose: FlowPurpose, about: String) -> Link? in
      guard let flow = exchange.generation.flow(for: purpose)?.name, offers(flow, exchange) else { return nil }
      // The first address does not replace another one.
      let done = label == "add" && purpose == .change(.email) ? "add_email" : nil
      return Link(
        label: words[label], address: Self.way(path(of: flow, exchange), flow, done: done),
        name: "\(words[label]): \(words[about])")
    }
    var rows: [Row] = []
    let phone = account.identifier(.phone)
    let phoneLink = phone == nil ? link("add", .join(.phone), "phone") : link("change", .change(.phone), "phone")
    if phone != nil || phoneLink != nil {
      rows.append(row("phone", phone, [phoneLink], words))
    }
    let email = account.identifier(.email)
    let emailLinks =
      email == nil
      ? [link("add", .change(.email), "email")]
      : [
        email?.verifiedAt == nil ? link("verify_your_email", .verify(.email), "email") : nil,
        link("change", .change(.email), "email"),
      ]
    if email != nil || emailLinks.contains(where: { $0 != nil }) { rows.append(row("email", email, emailLinks, words)) }
    rows += exchange.pages.filter { $0.isOnEntrance && $0.passwordField != nil }.compactMap {
      passwordRow($0, account, words, exchange)
    }
    return rows
      + exchange.pages.filter { $0.descriptor.identifierKinds.contains(.federated) }.map {
        siteRow($0, account, words, exchange)
      }
  }

  /// The row of a password. It is changed in the same way as a forgotten one: with a code to the email address.
  private func passwordRow(_ page: ProviderPage, _ account: Account, _ words: Words, _ exchange: Exchange) -> Row? {
    let isSet = account.credentials.contains(page.name)
    guard let email = account.identifier(.email), isSet || email.verifiedAt != nil else { return nil }
    let title = page.shortName(words)
    let flow = exchange.generation.flow(for: .factor(page.name, .recover))?.name
    let label = words[isSet ? "change" : "set_up"]
    let link = flow.flatMap { flow in
      offers(flow, exchange)
        ? Link(
          label: label,
          address: FormFields.address("/auth/login", ["with": "reset", "return_to": "/auth/account?done=\(flow)"]),
          name: "\(label): \(title)") : nil
    }
    return Row(
      name: title, value: nil, badge: words[isSet ? "is_set" : "is_not_set"], isGood: isSet,
      links: [link].compactMap(\.self))
  }

  /// The row of an identity at another site. It can be added if there is a flow for it, and removed if the account has
  /// another sign-in method.
  private func siteRow(_ site: ProviderPage, _ account: Account, _ words: Words, _ exchange: Exchange) -> Row {
    let title = site.shortName(words)
    let held = account.identifiers.first { site.proves($0.identifier, among: exchange.providers) }
    let canLeave = held != nil && driver.engine.canDisconnect(site.name, from: account, exchange.generation)
    let canJoin = held == nil && exchange.generation.flow(connecting: site.name) != nil
    let action = canLeave ? "disconnect" : canJoin ? "connect" : nil
    return Row(
      name: title, value: held?.identifier.shown, badge: words[held != nil ? "joined" : "not_joined"],
      isGood: held != nil, links: [],
      button: action.map {
        Button(action: $0, label: words[$0], value: site.name.rawValue, name: "\(words[$0]): \(title)")
      })
  }

  /// The rows of the factors that protect the account.
  private func factorRows(
    _ account: Account, _ holdings: [ProviderName: [HeldItem]], _ words: Words, _ exchange: Exchange
  ) -> [Row] {
    exchange.factors.sorted { ($0.pad == nil ? 1 : 0) < ($1.pad == nil ? 1 : 0) }.map { page in
      let items = (holdings[page.name] ?? []).map { item($0, page, words, exchange) }
      // If each item has links to change and remove it, the row does not repeat them. "I no longer have it" on their
      // pages leads to the reset.
      let areLinked = !items.isEmpty && items.allSatisfy { !$0.links.isEmpty }
      var row = row(page, account, areLinked: areLinked, words, exchange)
      row.items = items
      row.hasItems = !items.isEmpty
      return row
    }
  }

  private func item(_ held: HeldItem, _ page: ProviderPage, _ words: Words, _ exchange: Exchange) -> Item {
    let own = words.speaking(page.descriptor.words)
    let links = [(FlowPurpose.FactorOperation.change, "change_item"), (.disable, "remove_item")].compactMap {
      operation, label -> Link? in
      // The item is passed to the beginning of the provider's step, which must therefore be the beginning of the flow.
      guard page.descriptor.beginFields.contains(HeldItem.field),
        let flow = exchange.generation.flow(for: .factor(page.name, operation)),
        flow.steps.first?.choices == [page.name], offers(flow.name, exchange)
      else { return nil }
      let address = ProviderPage.stepAddress(
        flow.name, with: nil, returnTo: "/auth/account?done=\(flow.name)", about: held.id)
      return Link(label: own[label], address: address, name: "\(own[label]): \(held.name)")
    }
    return Item(
      name: held.name, details: held.details.map(own.translated),
      added: held.addedAt.map { Timestamp(milliseconds: $0).text },
      used: held.usedAt.map { Timestamp(milliseconds: $0).text }, links: links)
  }

  /// The page on which a flow of the account begins.
  private func path(of flow: String, _ exchange: Exchange) -> String {
    exchange.offered(first: flow).lazy.compactMap(\.ownPath).first ?? ProviderPage.stepPath
  }

  /// The row of a provider's factor, with links to its flows.
  /// - Parameter areLinked: whether each item of the provider has its own links.
  private func row(_ page: ProviderPage, _ account: Account, areLinked: Bool, _ words: Words, _ exchange: Exchange)
    -> Row
  {
    let isSet = account.credentials.contains(page.name)
    let title = page.shortName(words)
    let changes: [FlowPurpose.FactorOperation] = areLinked ? [] : [.change, .reset, .disable]
    let operations = isSet ? (page.keepsSeveral ? [.set] : []) + changes : [.set]
    let links = operations.compactMap { operation -> Link? in
      guard let flow = exchange.generation.flow(for: .factor(page.name, operation))?.name, offers(flow, exchange) else {
        return nil
      }
      let purpose = FlowPurpose.factor(page.name, operation).step(of: page.name)
      let said = operation == .reset ? words["reset"] : page.link(to: purpose, words) ?? words[purpose.label]
      return Link(
        label: said, address: Self.way(page.ownPath ?? ProviderPage.stepPath, flow), name: "\(said): \(title)")
    }
    return Row(name: title, value: nil, badge: words[isSet ? "is_set" : "is_not_set"], isGood: isSet, links: links)
  }

  private func row(_ name: String, _ held: HeldIdentifier?, _ links: [Link?], _ words: Words) -> Row {
    Row(
      name: words[name], value: held?.identifier.display,
      badge: held.map { words[$0.verifiedAt == nil ? "not_verified" : "verified"] },
      isGood: held?.verifiedAt != nil, links: links.compactMap(\.self))
  }

  private func place(_ session: Session, isCurrent: Bool, _ words: Words) -> Place {
    let name = DeviceName(userAgent: session.userAgent)
    let device = name.text(words)
    return Place(
      id: session.id, device: device, since: session.createdAt.text, seen: session.lastSeenAt.text,
      isCurrent: isCurrent, isPhone: name.isPhone,
      label: words.text("sign_out_there", ["device": device]))
  }
}

/// A short name for a browser, from its User-Agent, by which its owner can recognise it.
struct DeviceName {
  let browser: String?
  let system: String?

  private static let browsers: KeyValuePairs<String, String> = [
    "Edg/": "Edge", "OPR/": "Opera", "SamsungBrowser/": "Samsung Internet", "Firefox/": "Firefox", "FxiOS/": "Firefox",
    "CriOS/": "Chrome",
    "Chrome/": "Chrome", "Safari/": "Safari", "curl/": "curl",
  ]
  private static let systems: KeyValuePairs<String, String> = [
    "iPhone": "iPhone", "iPad": "iPad", "Android": "Android", "Windows": "Windows", "Mac OS X": "Mac",
    "CrOS": "ChromeOS", "Linux": "Linux",
  ]

  init(userAgent: String?) {
    let text = userAgent ?? ""
    browser = Self.browsers.first { text.contains($0.key) }?.value
    system = Self.systems.first { text.contains($0.key) }?.value
  }

  /// Whether it is a mobile device.
  var isPhone: Bool { system.map { ["iPhone", "iPad", "Android"].contains($0) } ?? false }

  func text(_ words: Words) -> String {
    if let browser, let system { return words.text("device_on", ["browser": browser, "system": system]) }
    return browser ?? system ?? words["unknown_device"]
  }
}
