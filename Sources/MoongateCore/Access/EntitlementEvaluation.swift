import MoongateSDK

extension AccountRules {
  /// Whether accounts.lua defines any groups or claims.
  package var definesEntitlements: Bool { !groups.isEmpty || !claims.isEmpty }

  /// Evaluates the groups and claims of a session.
  ///
  /// They depend on the account and on what the session has passed, not on the current time: `f.now` is the time of the
  /// session's last proof. All event loops and nodes therefore compute the same result, and it is recomputed only if
  /// one of those facts changes.
  /// - Throws: `PolicyFault` if any function fails. Attack: a function that fails must not silently remove a group,
  ///   because services may refuse by a group ("banned") as well as allow by one.
  package func entitlements(
    of snapshot: SessionSnapshot, in generation: any PolicyGeneration,
    by evaluator: () throws(PolicyFault) -> any PolicyEvaluator
  )
    throws(PolicyFault) -> Entitlements
  {
    guard definesEntitlements else { return .none }
    // A service token has no account, only the groups that it was given.
    if let token = snapshot.token, token.owner == nil { return entitlements(ofGroups: token.groups) }
    var found: [GroupName] = []
    var claims: [String: ClaimValue] = [:]
    let facts = snapshot.entitlementFacts(in: generation)
    for (name, definition) in groups.sorted(by: { $0.key < $1.key }) {
      switch definition {
      case .members: if snapshot.account.groups.contains(name) { found.append(name) }
      case .computed(let function): if try evaluator().condition(of: function, given: facts) { found.append(name) }
      }
    }
    for (name, function) in self.claims.sorted(by: { $0.key < $1.key }) {
      claims[name] = try evaluator().claim(of: function, given: facts)
    }
    return Entitlements(groups: found, claims: claims)
  }

  /// Why operators cannot add members to the group; nil if they can.
  package func problem(ofAddingTo group: GroupName) -> String? {
    switch groups[group] {
    case .members: nil
    case .computed: "The group \(group) is computed by a function of accounts.lua. It has no list of members."
    case nil: "accounts.lua defines no group \"\(group)\". Add it under `groups` first, as members()."
    }
  }

  /// The entitlements of a requester with a fixed list of groups, such as a token.
  ///
  /// Attack: a group is removed from accounts.lua, and tokens that were given that group keep it. Undefined names are
  /// therefore ignored.
  package func entitlements(ofGroups names: some Sequence<GroupName>) -> Entitlements {
    Entitlements(groups: names.filter { groups[$0] != nil })
  }
}

extension SessionSnapshot {
  /// The facts for the functions of `groups` and `claims`. Only verified identifiers are included.
  ///
  /// Attack: an account claims `ceo@example.com` without having verified it. `f.email.address` is nil for it here.
  package func entitlementFacts(in generation: any PolicyGeneration) -> Facts {
    let at = session.authenticatedAt
    var facts = Facts(
      now: at, account: account.facts(at: at, in: generation), client: ClientFacts(address: .unspecified),
      session: sessionFacts(at: at))
    facts.identifiers = account.verifiedIdentifiers
    return facts
  }

  /// `f.session`, without groups and claims by default.
  package func sessionFacts(at now: Timestamp, _ entitlements: Entitlements = .none) -> SessionFacts {
    account.sessionFacts(
      passed: session.counted.latest, age: now - session.createdAt, aal: token == nil ? session.assuranceLevel : 0,
      entitlements)
  }
}
