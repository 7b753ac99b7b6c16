import MoongateCore
import MoongateSDK

/// The access to routes and apps that kinds of requesters gain or lose between two configurations.
///
/// Each route of either configuration is represented by an example request that it handles. A route that earlier routes
/// shadow is represented by a request that still reaches it. A missing step that the user can take, such as a passcode,
/// counts as access.
package struct AccessDiff: Sendable, Encodable {
  /// A change for one kind of requester and one route.
  package struct Change: Sendable, Encodable, Equatable {
    /// Whether the requester has access by the new configuration only, or by the old one only.
    package enum Kind: String, Sendable, Encodable { case gains, loses }

    /// An example such as `GET /ops/x`, or an app, such as `app grafana`.
    package let request: String
    /// The location of the route or app that decides in the new configuration, or in the old one if the new one has
    /// none.
    package let route: String
    /// `anybody`, `signed in`, a network such as `10.0.0.0/8`, or the name of a group.
    package let who: String
    package let change: Kind
  }

  /// A group with a different definition, so that its members may differ.
  package struct GroupChange: Sendable, Encodable, Equatable {
    package let group: String
    /// `members` or `function`; nil if the group is not defined.
    package let old: String?
    package let new: String?
  }

  package let access: [Change]
  package let groups: [GroupChange]

  package var isEmpty: Bool { access.isEmpty && groups.isEmpty }

  /// A kind of requester.
  fileprivate enum Requester: Hashable {
    case anybody, signedIn
    /// Clients of a network that `allow.networks` names, without a session.
    case network(AddressBlock)
    case member(GroupName)

    var name: String {
      switch self {
      case .anybody: "anybody"
      case .signedIn: "signed in"
      case .network(let block): block.description
      case .member(let group): group.rawValue
      }
    }
  }

  init(access: [Change], groups: [GroupChange]) {
    self.access = access
    self.groups = groups
  }

  package init(old: any PolicyGeneration, new: any PolicyGeneration) throws(PolicyFault) {
    let before = try Side(old)
    let after = try Side(new)
    let groups = Set(old.accounts.groups.keys).union(new.accounts.groups.keys).sorted()
    let networks = Set((old.routes.routes + new.routes.routes).flatMap(\.openNetworks)).sorted {
      $0.description < $1.description
    }
    let members = groups.map(Requester.member)
    let requesters = [.anybody, .signedIn] + networks.map(Requester.network) + members
    var changes: [Change] = []
    var seen: Set<ExampleRequest> = []
    for request in (before.examples + after.examples) where seen.insert(request).inserted {
      changes += Self.changes(
        before.access(request, requesters), after.access(request, requesters), to: request.text, requesters)
    }
    for id in Set(old.apps.apps.map(\.id)).union(new.apps.apps.map(\.id)).sorted() {
      changes += Self.changes(
        before.access(app: id, [.signedIn] + members), after.access(app: id, [.signedIn] + members), to: "app \(id)",
        [.signedIn] + members)
    }
    access = changes
    self.groups = groups.compactMap { name in
      let change = GroupChange(group: name.rawValue, old: before.definition(of: name), new: after.definition(of: name))
      return before.source(of: name) == after.source(of: name) && change.old == change.new ? nil : change
    }
  }

  /// The kinds of requester that gain or lose access.
  private static func changes(_ was: Access, _ now: Access, to request: String, _ requesters: [Requester]) -> [Change] {
    requesters.compactMap { requester in
      let had = was.admits(requester)
      let has = now.admits(requester)
      // A change for everybody is not repeated for each group.
      guard had != has, !requester.wider.contains(where: { was.admits($0) == had && now.admits($0) == has }) else {
        return nil
      }
      return Change(
        request: request, route: (now.location ?? was.location)?.description ?? "", who: requester.name,
        change: has ? .gains : .loses)
    }
  }

  /// The access that one configuration grants to one request.
  private struct Access {
    let location: SourceLocation?
    let admitted: Set<Requester>

    func admits(_ requester: Requester) -> Bool { admitted.contains(requester) }
  }

  /// One of the two configurations.
  private struct Side {
    let generation: any PolicyGeneration
    let evaluator: any PolicyEvaluator
    let matcher: RouteMatcher
    let examples: [ExampleRequest]
    private let session = Side.makeSession()

    init(_ generation: any PolicyGeneration) throws(PolicyFault) {
      self.generation = generation
      evaluator = try generation.makeEvaluator()
      matcher = RouteMatcher(generation.routes)
      let routes = generation.routes.routes
      var examples: [ExampleRequest] = []
      for index in routes.indices {
        let reach = RouteReach(routes: routes, budget: ProofBudget())
        let found = (try? reach.routes(for: routes[index].path, host: routes[index].host)) ?? []
        examples += found.filter { $0.route == index }.map(\.request)
      }
      self.examples = examples
    }

    func access(_ request: ExampleRequest, _ requesters: [Requester]) -> Access {
      let path = Array(request.path.utf8)
      let method = Array(request.method.utf8)
      let host = request.host ?? generation.gateway.publicURL.host
      guard let index = matcher.match(host: host, path: path.span, method: method.span) else {
        return Access(location: nil, admitted: [])
      }
      let route = generation.routes.routes[index]
      return Access(location: route.location, admitted: Set(requesters.filter { admits($0, route, request, host) }))
    }

    func access(app id: String, _ requesters: [Requester]) -> Access {
      guard let app = generation.apps[id], app.signsUsersIn else { return Access(location: nil, admitted: []) }
      let request = RequestFacts(
        method: "GET", host: generation.gateway.publicURL.host, path: App.requestPath, query: "")
      let rule = AccessRule(groups: app.requirement.groups, steps: app.requirement.steps, decide: app.decide)
      let admitted = requesters.filter { requester in
        let entitlements = entitlements(of: requester)
        // A missing factor counts as access, because the user can pass it.
        return Self.isAccess(
          rule.verdict(session, entitlements, at: Moment.now) { ask($0, session, entitlements, request) })
      }
      return Access(location: app.locations[""], admitted: Set(admitted))
    }

    private func admits(_ requester: Requester, _ route: Route, _ request: ExampleRequest, _ host: String) -> Bool {
      switch requester {
      case .anybody: return route.isOpen
      case .network(let block): return route.isOpen(toAllOf: block, at: host, in: generation.gateway)
      case .signedIn, .member: break
      }
      let facts = RequestFacts(method: request.method, host: host, path: request.path, query: "")
      return Self.isAccess(
        route.verdict(session, .success(entitlements(of: requester)), at: Moment.now) { ask($0, $1, $2, facts) })
    }

    private func entitlements(of requester: Requester) -> Entitlements {
      if case .member(let name) = requester { generation.accounts.entitlements(ofGroups: [name]) } else { .none }
    }

    private func ask(
      _ function: FunctionName, _ session: SessionSnapshot, _ entitlements: Entitlements, _ request: RequestFacts
    ) -> Verdict {
      evaluator.verdict(
        of: function,
        given: session.facts(
          of: request, by: ClientFacts(address: .unspecified, isNewDevice: false), entitlements, at: Moment.now,
          clockIsSuspect: false))
    }

    /// Whether a missing step, which the user can take, is all that is missing.
    private static func isAccess(_ verdict: RouteVerdict) -> Bool {
      switch verdict {
      case .pass, .needs, .tooNew, .emailNotVerified: true
      case .noSession, .notInGroup, .denied, .failed: false
      }
    }

    /// A user with a verified email address and phone number.
    private static func makeSession() -> SessionSnapshot {
      let now = Moment.now
      let held = [
        Identifier(kind: .phone, value: "+919000000001", display: "+919000000001"),
        Identifier(kind: .email, value: "person@example.com", display: "person@example.com"),
      ].map { HeldIdentifier(identifier: $0, verifiedAt: now) }
      return SessionSnapshot(
        session: Session(
          id: "se_of_a_comparison", token: TokenHash(bytes: []), account: Moment.account, createdAt: now,
          expiresAt: now + .seconds(3600),
          idle: .seconds(3600), lastSeenAt: now, passed: [], userAgent: nil),
        account: Account(id: Moment.account, createdAt: now, lastSeenAt: now, identifiers: held))
    }

    /// The kind of the group's definition.
    func definition(of group: GroupName) -> String? {
      switch generation.accounts.groups[group] {
      case .members: "members"
      case .computed: "function"
      case nil: nil
      }
    }

    /// The source of a computed group: the whole text of accounts.lua and of the shared files, since the function may
    /// use other parts of them.
    func source(of group: GroupName) -> [UInt8]? {
      guard case .computed? = generation.accounts.groups[group] else { return nil }
      return (generation as? Generation).map { Array($0.texts(of: "accounts.lua").joined()) }
    }
  }
}

extension AccessDiff.Requester {
  /// The kinds of requester that include this one.
  fileprivate var wider: [AccessDiff.Requester] {
    switch self {
    case .anybody: []
    case .signedIn, .network: [.anybody]
    case .member: [.anybody, .signedIn]
    }
  }
}

extension Route {
  /// Whether the route needs no session from any client of a network.
  fileprivate func isOpen(toAllOf block: AddressBlock, at host: String, in gateway: GatewaySettings) -> Bool {
    guard let first = ClientAddress(bytes: block.network) else { return isOpen }
    let isNamed = openNetworks.contains { $0.prefix <= block.prefix && first.isIn($0) }
    // An address of a trusted proxy never counts, so another one of the network stands for it.
    let last = block.network.enumerated().map { index, byte in
      byte | UInt8(truncatingIfNeeded: 0xff >> min(8, max(0, block.prefix - index * 8)))
    }
    return isOpen
      || isNamed
        && [first, ClientAddress(bytes: last)].compactMap(\.self).contains { isOpen(to: $0, at: host, in: gateway) }
  }
}

extension AccessDiff {
  /// The changes as text; nil if none exist.
  /// - Parameter colour: whether to use terminal colours.
  package func text(colour: Bool) -> String? {
    guard !isEmpty else { return nil }
    let style = TerminalStyle(isOn: colour)
    var lines: [String] = []
    if !access.isEmpty {
      lines.append(style.bold("access"))
      let who = access.map(\.who.count).max() ?? 0
      let request = access.map(\.request.count).max() ?? 0
      for change in access {
        let verb = change.change == .gains ? style.green("gains") : style.red("loses")
        lines.append(
          "  \(Columns.pad(change.who, to: who))  \(verb)  \(Columns.pad(change.request, to: request))  \(change.route)"
        )
      }
    }
    if !groups.isEmpty {
      lines.append(style.bold("groups"))
      for group in groups {
        lines.append("  \(group.group): \(group.old ?? "not defined") → \(group.new ?? "not defined")")
      }
    }
    return lines.joined(separator: "\n")
  }
}
