import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/account`: who I am, what proves it, where I am signed in, and the ways out.
struct AccountPage: Sendable {
  let driver: FlowDriver
  let ending: SessionEnding
  let pages: PageRenderer

  struct Link: Decodable {
    let label: String
    let address: String
    /// For those who cannot see which row it stands in.
    let name: String
  }

  struct Row: Decodable {
    let name: String
    let value: String?
    let badge: String?
    let isGood: Bool
    let links: [Link]
  }

  struct Place: Decodable {
    let id: String
    let device: String
    let since: String
    let seen: String
    let isCurrent: Bool
    let label: String
  }

  struct Model: PageModel {
    static let template = PageTemplate.account
    let notice: String?
    let isUnverified: Bool
    let verify: String
    let rows: [Row]
    let places: [Place]
    /// Whether there are sessions besides this one.
    let hasOthers: Bool
    var stressesSupport = false
  }

  /// What a page that leads back here may say was done.
  private static let done: Set<String> = ["add_email", "ended", "ended_elsewhere", "confirmed"]

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, "/auth/account") { exchange throws(Refusal) in
        guard let found = try await driver.session(exchange) else {
          return exchange.leadOn(to: FormFields.address("/auth/login", ["return_to": "/auth/account"]))
        }
        return try await show(found, exchange)
      },
      Endpoint(.page, .post, "/auth/account") { exchange throws(Refusal) in
        let form = try await exchange.form()
        guard let own = try await driver.session(exchange)?.session else {
          return exchange.leadOn(to: FormFields.address("/auth/login", ["return_to": "/auth/account"]))
        }
        let isEverywhere = form["action"] == "everywhere"
        if isEverywhere || form["action"] == "elsewhere" {
          try await exchange.asking { () async throws(StoreFault) in
            try await ending.endAll(of: own.account, except: isEverywhere ? nil : own, by: exchange.client.address)
          }
          return isEverywhere ? LogoutPage.leave(to: "/auth/login", exchange) : exchange.leadOn(to: "/auth/account?done=ended_elsewhere")
        }
        let all = try await exchange.asking { () async throws(StoreFault) in try await driver.sessions.sessions(of: own.account) }
        // Among one's own only.
        for session in all where session.id == form["session"] {
          try await exchange.asking { () async throws(StoreFault) in try await ending.end(session, by: exchange.client.address) }
        }
        let isOver = form["session"] == own.id
        guard isOver else { return exchange.leadOn(to: "/auth/account?done=ended") }
        return LogoutPage.leave(to: "/auth/login", exchange)
      },
    ]
  }

  private func show(_ found: SessionSnapshot, _ exchange: Exchange) async throws(Refusal) -> Response {
    let words = pages.words(exchange)
    let account = found.account
    let sessions = try await exchange.asking { () async throws(StoreFault) in try await driver.sessions.sessions(of: account.id) }
    let email = account.identifier(.email)
    let done = try exchange.query()["done"].flatMap { name -> String? in
      guard Self.done.contains(name) else { return whatWasDone(by: name, words, exchange) }
      return words["done_" + (name == "add_email" ? "change_email" : name)]
    }
    let verifying = exchange.generation.flow(for: .verify(.email))?.name
    let model = Model(
      notice: done, isUnverified: email != nil && email?.verifiedAt == nil && verifying.map { offers($0, exchange) } ?? false,
      verify: verifying.map { Self.way(path(of: $0, exchange), $0) } ?? "", rows: rows(account, words, exchange),
      places: sessions.map { place($0, isCurrent: $0.id == found.session.id, words) }, hasOthers: sessions.count > 1)
    return pages.page(model, title: words["account_page"], exchange)
  }

  /// What a flow has done whose page leads back here; nil for a name that tells nothing.
  private func whatWasDone(by flow: String, _ words: Words, _ exchange: Exchange) -> String? {
    let said: String
    var endsOthers = true
    switch exchange.generation.purpose(of: flow) {
    case .verify(let kind): (said, endsOthers) = (words["done_verify_\(kind.rawValue)"], false)
    case .join(let kind): (said, endsOthers) = (words["done_join_\(kind.rawValue)"], false)
    case .change(let kind): said = words["done_change_\(kind.rawValue)"]
    case .factor(_, .unlock), .factor(_, .recover): return nil
    case .factor(let provider, let operation):
      guard let page = ProviderPage(provider, exchange.providers) else { return nil }
      endsOthers = operation != .set
      if page.pad != nil {
        said = words["done_pin_\(operation.rawValue)"]
      } else {
        said = words.text(operation == .set ? "done_set" : operation == .disable ? "done_disable" : "done_change", ["name": page.title(words)])
      }
    default: return nil
    }
    return endsOthers ? said + " " + words["others_signed_out"] : said
  }

  private func offers(_ flow: String, _ exchange: Exchange) -> Bool {
    exchange.generation.flows[flow]?.steps.first?.choices.contains { exchange.generation.policies[$0] != nil } ?? false
  }

  /// A page that comes back here.
  /// - Parameter done: what was done then, by its name.
  private static func way(_ path: String, _ flow: String, done: String? = nil) -> String {
    FormFields.address(path, ["flow": flow, "return_to": "/auth/account?done=\(done ?? flow)"])
  }

  private func rows(_ account: Account, _ words: Words, _ exchange: Exchange) -> [Row] {
    let name = [account.firstName, account.lastName].compactMap { $0 }.joined(separator: " ")
    let link = { (label: String, purpose: FlowPurpose, about: String) -> Link? in
      guard let flow = exchange.generation.flow(for: purpose)?.name, offers(flow, exchange) else { return nil }
      // The first address takes no other one's place.
      let done = label == "add" && purpose == .change(.email) ? "add_email" : nil
      return Link(label: words[label], address: Self.way(path(of: flow, exchange), flow, done: done), name: "\(words[label]): \(words[about])")
    }
    var rows: [Row] = []
    if !name.isEmpty { rows.append(Row(name: words["name"], value: name, badge: nil, isGood: true, links: [])) }
    let phone = account.identifier(.phone)
    let phoneLink = phone == nil ? link("add", .join(.phone), "phone") : link("change", .change(.phone), "phone")
    if phone != nil || phoneLink != nil {
      rows.append(row("phone", phone, [phoneLink], words))
    }
    let email = account.identifier(.email)
    let emailLinks =
      email == nil
      ? [link("add", .change(.email), "email")]
      : [email?.verifiedAt == nil ? link("verify_your_email", .verify(.email), "email") : nil, link("change", .change(.email), "email")]
    if email != nil || emailLinks.contains(where: { $0 != nil }) { rows.append(row("email", email, emailLinks, words)) }
    rows += exchange.factors.sorted { ($0.pad == nil ? 1 : 0) < ($1.pad == nil ? 1 : 0) }.map { row($0, account, words, exchange) }
    for site in exchange.pages where site.descriptor.identifierKinds.contains(.federated) {
      let isJoined = account.identifiers.contains { $0.identifier.kind == .federated }
      rows.append(Row(name: site.shortName(words), value: nil, badge: words[isJoined ? "joined" : "not_joined"], isGood: isJoined, links: []))
    }
    return rows
  }

  /// The page on which a flow of the account begins.
  private func path(of flow: String, _ exchange: Exchange) -> String {
    exchange.offered(first: flow).lazy.compactMap(\.ownPath).first ?? ProviderPage.stepPath
  }

  /// What a provider keeps for the account, with links to the flows that there are for it.
  private func row(_ page: ProviderPage, _ account: Account, _ words: Words, _ exchange: Exchange) -> Row {
    let isSet = account.credentials.contains(page.name)
    let title = page.shortName(words)
    let operations: [FlowPurpose.FactorOperation] = isSet ? [.change, .reset, .disable] : [.set]
    let links = operations.compactMap { operation -> Link? in
      guard let flow = exchange.generation.flow(for: .factor(page.name, operation))?.name, offers(flow, exchange) else { return nil }
      let purpose = FlowPurpose.factor(page.name, operation).step(of: page.name)
      let said = operation == .reset ? words["reset"] : page.link(to: purpose, words) ?? words[purpose.label]
      return Link(label: said, address: Self.way(page.ownPath ?? ProviderPage.stepPath, flow), name: "\(said): \(title)")
    }
    return Row(name: title, value: nil, badge: words[isSet ? "is_set" : "is_not_set"], isGood: isSet, links: links)
  }

  private func row(_ name: String, _ held: HeldIdentifier?, _ links: [Link?], _ words: Words) -> Row {
    Row(
      name: words[name], value: held?.identifier.display, badge: held.map { words[$0.verifiedAt == nil ? "not_verified" : "verified"] },
      isGood: held?.verifiedAt != nil, links: links.compactMap(\.self))
  }

  private func place(_ session: Session, isCurrent: Bool, _ words: Words) -> Place {
    let device = DeviceName(userAgent: session.userAgent).text(words)
    return Place(
      id: session.id, device: device, since: session.createdAt.text, seen: session.lastSeenAt.text, isCurrent: isCurrent,
      label: words.text("sign_out_there", ["device": device]))
  }
}

/// What a browser calls itself, short enough for its owner to recognise it by.
struct DeviceName {
  let browser: String?
  let system: String?

  private static let browsers: KeyValuePairs<String, String> = [
    "Edg/": "Edge", "OPR/": "Opera", "SamsungBrowser/": "Samsung Internet", "Firefox/": "Firefox", "FxiOS/": "Firefox", "CriOS/": "Chrome",
    "Chrome/": "Chrome", "Safari/": "Safari", "curl/": "curl",
  ]
  private static let systems: KeyValuePairs<String, String> = [
    "iPhone": "iPhone", "iPad": "iPad", "Android": "Android", "Windows": "Windows", "Mac OS X": "Mac", "CrOS": "ChromeOS", "Linux": "Linux",
  ]

  init(userAgent: String?) {
    let text = userAgent ?? ""
    browser = Self.browsers.first { text.contains($0.key) }?.value
    system = Self.systems.first { text.contains($0.key) }?.value
  }

  func text(_ words: Words) -> String {
    if let browser, let system { return words.text("device_on", ["browser": browser, "system": system]) }
    return browser ?? system ?? words["unknown_device"]
  }
}
