import MoongateCore
import MoongateSDK

extension AccountPage {
  func offers(_ flow: String, _ exchange: Exchange) -> Bool {
    exchange.generation.flows[flow]?.steps.first?.choices.contains { exchange.generation.policies[$0] != nil } ?? false
  }

  /// The address of a page that returns here.
  /// - Parameter done: the value of `done=` on return.
  static func returningAddress(_ path: String, _ flow: String, done: String? = nil) -> String {
    FormFields.address(path, ["flow": flow, "return_to": PagePath.account(done: done ?? flow)])
  }

  /// The user's sign-in methods: phone number, email address, password and other sites.
  func signInRows(_ account: Account, _ words: Words, _ exchange: Exchange) -> [AccountModel.Row] {
    let link = { (label: String, purpose: FlowPurpose, about: String) -> AccountModel.Link? in
      guard let flow = exchange.generation.flow(for: purpose)?.name, offers(flow, exchange) else { return nil }
      // The first address does not replace another one.
      let done = label == "add" && purpose == .change(.email) ? "add_email" : nil
      return AccountModel.Link(
        label: words[label], address: Self.returningAddress(path(of: flow, exchange), flow, done: done),
        name: "\(words[label]): \(words[about])")
    }
    var rows: [AccountModel.Row] = []
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
    // A name is neither changed nor verified here.
    if let name = account.identifier(.name) {
      rows.append(
        AccountModel.Row(name: words["user_name"], value: name.identifier.display, badge: nil, isGood: true, links: []))
    }
    rows += exchange.pages.filter { $0.isOnSignInPage && $0.passwordField != nil }.compactMap {
      passwordRow($0, account, words, exchange)
    }
    return rows
      + exchange.pages.filter { $0.descriptor.identifierKinds.contains(.federated) }.map {
        siteRow($0, account, words, exchange)
      }
  }

  /// The row of a password. It is changed in the same way as a forgotten one: with a code to the email address.
  private func passwordRow(_ page: ProviderPage, _ account: Account, _ words: Words, _ exchange: Exchange)
    -> AccountModel.Row?
  {
    let isSet = account.credentials.contains(page.name)
    let email = account.identifier(.email)
    guard email?.verifiedAt != nil || isSet && account.identifiers.contains(where: { page.takes($0.identifier.kind) })
    else { return nil }
    let title = page.shortName(words)
    let flow = email == nil ? nil : exchange.generation.flow(for: .factor(page.name, .recover))?.name
    let label = words[isSet ? "change" : "set_up"]
    let link = flow.flatMap { flow in
      offers(flow, exchange)
        ? AccountModel.Link(
          label: label,
          address: FormFields.address(PagePath.signIn, ["with": "reset", "return_to": PagePath.account(done: flow)]),
          name: "\(label): \(title)") : nil
    }
    return AccountModel.Row(
      name: title, value: nil, badge: words[isSet ? "is_set" : "is_not_set"], isGood: isSet,
      links: [link].compactMap(\.self))
  }

  /// The row of an identity at another site. It can be added if there is a flow for it, and removed if the account has
  /// another sign-in method.
  private func siteRow(_ site: ProviderPage, _ account: Account, _ words: Words, _ exchange: Exchange)
    -> AccountModel.Row
  {
    let title = site.shortName(words)
    let held = account.identifiers.first { site.proves($0.identifier, among: exchange.providers) }
    let canLeave = held != nil && driver.engine.canDisconnect(site.name, from: account, exchange.generation)
    let canJoin = held == nil && exchange.generation.flow(connecting: site.name) != nil
    let action = canLeave ? "disconnect" : canJoin ? "connect" : nil
    return AccountModel.Row(
      name: title, value: held?.identifier.shown, badge: words[held != nil ? "joined" : "not_joined"],
      isGood: held != nil, links: [],
      button: action.map {
        AccountModel.Button(action: $0, label: words[$0], value: site.name.rawValue, name: "\(words[$0]): \(title)")
      })
  }

  /// The rows of the factors that protect the account.
  func factorRows(
    _ account: Account, _ holdings: [ProviderName: [HeldItem]], _ words: Words, _ exchange: Exchange
  ) -> [AccountModel.Row] {
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

  private func item(_ held: HeldItem, _ page: ProviderPage, _ words: Words, _ exchange: Exchange) -> AccountModel.Item {
    let own = words.withTranslations(of: page.descriptor.words)
    let links = [(FlowPurpose.FactorOperation.change, "change_item"), (.disable, "remove_item")].compactMap {
      operation, label -> AccountModel.Link? in
      // The item is passed to the beginning of the provider's step, which must therefore be the beginning of the flow.
      guard page.descriptor.beginFields.contains(HeldItem.field),
        let flow = exchange.generation.flow(for: .factor(page.name, operation)),
        flow.steps.first?.choices == [page.name], offers(flow.name, exchange)
      else { return nil }
      let address = ProviderPage.stepAddress(
        flow.name, with: nil, returnTo: PagePath.account(done: flow.name), about: held.id)
      return AccountModel.Link(label: own[label], address: address, name: "\(own[label]): \(held.name)")
    }
    return AccountModel.Item(
      name: held.name, details: held.details.map(own.translated),
      added: held.addedAt.map { Timestamp(milliseconds: $0).text },
      used: held.usedAt.map { Timestamp(milliseconds: $0).text }, links: links)
  }

  /// The page on which a flow of the account begins.
  func path(of flow: String, _ exchange: Exchange) -> String {
    exchange.offered(first: flow).lazy.compactMap(\.ownPath).first ?? ProviderPage.stepPath
  }

  /// The row of a provider's factor, with links to its flows.
  /// - Parameter areLinked: whether each item of the provider has its own links.
  private func row(_ page: ProviderPage, _ account: Account, areLinked: Bool, _ words: Words, _ exchange: Exchange)
    -> AccountModel.Row
  {
    let isSet = account.credentials.contains(page.name)
    let title = page.shortName(words)
    let changes: [FlowPurpose.FactorOperation] = areLinked ? [] : [.change, .reset, .disable]
    let operations = isSet ? (page.keepsSeveral ? [.set] : []) + changes : [.set]
    let links = operations.compactMap { operation -> AccountModel.Link? in
      guard let flow = exchange.generation.flow(for: .factor(page.name, operation))?.name, offers(flow, exchange) else {
        return nil
      }
      let purpose = FlowPurpose.factor(page.name, operation).step(of: page.name)
      let said = operation == .reset ? words["reset"] : page.link(to: purpose, words) ?? words[purpose.label]
      return AccountModel.Link(
        label: said, address: Self.returningAddress(page.ownPath ?? ProviderPage.stepPath, flow),
        name: "\(said): \(title)")
    }
    return AccountModel.Row(
      name: title, value: nil, badge: words[isSet ? "is_set" : "is_not_set"], isGood: isSet, links: links)
  }

  private func row(_ name: String, _ held: HeldIdentifier?, _ links: [AccountModel.Link?], _ words: Words)
    -> AccountModel.Row
  {
    AccountModel.Row(
      name: words[name], value: held?.identifier.display,
      badge: held.map { words[$0.verifiedAt == nil ? "not_verified" : "verified"] },
      isGood: held?.verifiedAt != nil, links: links.compactMap(\.self))
  }

  func place(_ session: Session, isCurrent: Bool, _ words: Words) -> AccountModel.Place {
    let name = DeviceName(userAgent: session.userAgent)
    let device = name.text(words)
    return AccountModel.Place(
      id: session.id, device: device, since: session.createdAt.text, seen: session.lastSeenAt.text,
      address: session.address, lastAddress: session.lastAddress, isCurrent: isCurrent, isPhone: name.isPhone,
      label: words.text("sign_out_there", ["device": device]))
  }

  /// The row of a connected app. One that was removed from apps.lua has its id as its name.
  func app(_ connection: AppConnection, _ words: Words, _ exchange: Exchange) -> AccountModel.ConnectedApp {
    let name = exchange.generation.apps[connection.app]?.name ?? connection.app
    return AccountModel.ConnectedApp(
      id: connection.app, name: name, scopes: connection.scopes.map { words.text(ofScope: $0) },
      since: connection.createdAt.text, used: connection.usedAt.text, label: "\(words["disconnect"]): \(name)")
  }

  /// The row of a trusted device.
  func row(_ device: TrustedDevice, isCurrent: Bool, _ words: Words) -> AccountModel.Device {
    let name = DeviceName(userAgent: device.userAgent).text(words)
    return AccountModel.Device(
      id: device.id, name: name, since: device.createdAt.text, seen: device.lastSeenAt.text, isCurrent: isCurrent,
      label: "\(words["remove_item"]): \(name)")
  }
}
