import MoongateCore
import MoongateSDK

// The sign-in methods that the page offers, with their providers and flows.

extension SignInPage {
  /// Whether the page has no form for any provider of the flow, only links.
  func hasOnlyLinks(_ own: String?, _ exchange: Exchange) -> Bool {
    let links = links(own, exchange)
    // Without a named flow, the page also offers methods of other flows.
    let isUsed =
      own == nil
      ? [SignInMethod.phone, .email, .code].contains { isOffered($0, nil, exchange) }
      : exchange.offered(first: own ?? "").contains { !isLink($0, own, exchange) }
    return !isUsed && sites(own, exchange).isEmpty
      && !exchange.offered(first: own ?? defaultFlow).contains(where: isCeremony) && !links.isEmpty
  }

  /// Refuses to show a registration form with which nobody can register.
  /// - Parameter invitation: the invitation of the browser; nil: none.
  /// - Throws: 403 `registration_closed` if no flow creates accounts, `invitation_required` if none does without an
  ///   invitation; 404 if none of those is offered by this page.
  func demandOpen(_ own: String?, by invitation: Invitation?, _ exchange: Exchange) throws(Refusal) {
    guard exchange.generation.registers || invitation != nil else {
      let isByInvitation = exchange.generation.accounts.registration.word == .invited
      throw exchange.refusal(isByInvitation ? .invitationRequired : .registrationClosed)
    }
    guard offersAnything(own, exchange) else { throw exchange.refusal(.notFound) }
  }

  /// Whether the page offers a way to sign in or to register.
  func offersAnything(_ own: String?, _ exchange: Exchange) -> Bool {
    SignInMethod.allCases.contains { isOffered($0, own, exchange) } || !sites(own, exchange).isEmpty
      || !links(own, exchange).isEmpty
  }

  var defaultFlow: String { NextPage.defaultFlow(of: kind.path) }

  /// A sign-in flow of the operator that is named in the address; nil for an invalid name and for the page's default
  /// flow.
  func ownFlow(_ name: String?, _ exchange: Exchange) -> String? {
    guard let name, name != defaultFlow, let flow = exchange.generation.flows[name], flow.purpose.letsIn else {
      return nil
    }
    return name
  }

  /// The provider and the flow of a sign-in method; nil if it is not available.
  func entry(_ method: SignInMethod, _ own: String?, _ exchange: Exchange) -> (provider: ProviderPage, flow: String)? {
    let flow = own ?? defaultFlow
    switch method {
    case .phone: return field(.phone, exchange.offered(first: flow)).map { ($0, flow) }
    case .code: return field(.email, exchange.offered(first: flow).filter(\.sendsCodes)).map { ($0, flow) }
    case .email: return passwordEntry(exchange)
    case .reset:
      let usual = passwordEntry(exchange).flatMap { exchange.generation.flow(for: .factor($0.provider.name, .recover)) }
      let others = exchange.generation.flows.values.filter { $0.purpose.recoveredProvider != nil }.sorted {
        $0.name < $1.name
      }
      let resets = [usual].compactMap(\.self) + others
      return resets.lazy.compactMap { reset in
        field(.email, exchange.offered(first: reset.name).filter(\.sendsCodes)).map { ($0, reset.name) }
      }.first
    }
  }

  /// The provider and flow of sign-in with email address or user name, and password: the flow for it alone, or else one
  /// that offers it among others.
  private func passwordEntry(_ exchange: Exchange) -> (provider: ProviderPage, flow: String)? {
    let flows = exchange.generation.flows.values.filter { flow in
      if kind == .register { return flow.purpose.registersFactor }
      return flow.purpose == .signIn && flow.account != .new && !flow.needsSession(by: exchange.providers)
    }
    var found: [(provider: ProviderPage, flow: String)] = []
    for flow in flows.sorted(by: { ($0.firstChoices, $0.name) < ($1.firstChoices, $1.name) }) {
      let able = exchange.offered(first: flow.name).filter { $0.isOnSignInPage && $0.passwordField != nil }
      if let provider = field(.email, able) ?? field(.name, able) { found.append((provider, flow.name)) }
    }
    // Of several flows, the one with the usual name.
    let usual = found.first { provider, flow in
      kind == .register
        ? flow == FlowPurpose.register(setting: provider.name).usualName : flow == "login_\(provider.name)"
    }
    return usual ?? found.first
  }

  /// The provider of the field for a kind of identifier.
  private func field(_ kind: IdentifierKind, _ pages: [ProviderPage]) -> ProviderPage? {
    ProviderPage.accepting(kind, of: pages)
  }

  /// The other sites with a button, by descending priority.
  func sites(_ own: String?, _ exchange: Exchange) -> [ProviderPage] {
    exchange.offered(first: own ?? defaultFlow).filter { $0.isOnSignInPage && $0.siteButton != nil }.enumerated().sorted
    {
      ($1.element.buttonPriority, $0.offset) < ($0.element.buttonPriority, $1.offset)
    }.map(\.element)
  }

  /// The providers that are offered by a link.
  func links(_ own: String?, _ exchange: Exchange) -> [ProviderPage] {
    exchange.offered(first: own ?? defaultFlow).filter { isLink($0, own, exchange) }
  }

  private func isLink(_ page: ProviderPage, _ own: String?, _ exchange: Exchange) -> Bool {
    if page.isOnSignInPage || isCeremony(page) { return false }
    return ![SignInMethod.phone, .code].contains { entry($0, own, exchange)?.provider.name == page.name }
  }

  /// Whether users may choose to stay signed in by what the page offers.
  func offersRemembering(_ form: SignInForm, _ exchange: Exchange) -> Bool {
    if form.isSignedIn { return false }
    let others = form.method == .reset ? [] : [form.flow ?? defaultFlow]
    let flows = others + [entry(form.method, form.flow, exchange)?.flow].compactMap(\.self)
    return flows.contains { exchange.generation.flows[$0]?.offersRemembering(by: exchange.providers) ?? false }
  }

  /// Whether users sign in with its ceremony without typing anything.
  func isCeremony(_ page: ProviderPage) -> Bool {
    kind == .login && page.ceremonyButton != nil && page.descriptor.role.contains(.findsAccount)
  }

  func isOffered(_ method: SignInMethod, _ own: String?, _ exchange: Exchange) -> Bool {
    entry(method, own, exchange) != nil && (kind == .login || method == .phone || method == .email)
  }

  /// The provider by which this device has signed in last; nil if the page does not begin with it.
  func lastProvider(_ own: String?, _ exchange: Exchange) -> ProviderName? {
    kind == .login && own == nil ? RememberedSignInMethod.find(in: exchange) : nil
  }

  /// The method whose form was used last; nil if none was, or if it is not offered.
  func lastMethod(_ own: String?, _ exchange: Exchange) -> SignInMethod? {
    guard let last = lastProvider(own, exchange) else { return nil }
    return [SignInMethod.phone, .email, .code].first {
      isOffered($0, own, exchange) && entry($0, own, exchange)?.provider.name == last
    }
  }

  /// The requested method, if the page offers it. Otherwise, the first method of the operator's flow, or the first of
  /// all.
  func method(_ asked: String?, _ own: String?, _ exchange: Exchange) -> SignInMethod {
    if let method = asked.flatMap(SignInMethod.init(rawValue:)), isOffered(method, own, exchange) { return method }
    if let last = lastMethod(own, exchange) { return last }
    let offered = [SignInMethod.phone, .email, .code].filter { isOffered($0, own, exchange) }
    return offered.first { entry($0, own, exchange)?.flow == own ?? defaultFlow } ?? offered.first ?? .phone
  }
}

extension FlowDefinition {
  /// The number of providers that its first step offers.
  fileprivate var firstChoices: Int { steps.first?.choices.count ?? 0 }
}
