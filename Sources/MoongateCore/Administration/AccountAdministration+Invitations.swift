import MoongateSDK

// Manages invitations, for `moongate invite` and the admin listener.

/// A new invitation with its code, which cannot be read again.
package struct CreatedInvitation: Sendable {
  package let invitation: Invitation
  package let code: SecretText
}

extension AccountAdministration {
  package func createInvitation(_ wanted: NewInvitation) async throws(StoreFault) -> CreatedInvitation {
    let (now, code) = (clock.now(), InvitationCode(from: random))
    let invitation = Invitation(
      id: "in_" + Base64URL.encode(random.bytes(12)), code: code.hash, identifier: wanted.identifier,
      groups: wanted.groups, createdAt: now, expiresAt: now + wanted.lifetime)
    var line = event(.invitationCreated, nil, at: now)
    line.identifier = wanted.identifier.map { keys.logHash($0.value) }
    line.detail.merge(invitation.detail) { _, own in own }
    line.detail["expires_at"] = invitation.expiresAt.text
    guard case .applied = try await store.apply([.putInvitation(invitation), .audit(line)], at: now) else {
      throw StoreFault("the invitation could not be stored")
    }
    return CreatedInvitation(invitation: invitation, code: code.secret)
  }

  /// The invitations that can be used, in the order of their IDs.
  /// - Parameters:
  ///   - id: the last ID of the previous page; nil for the first page.
  ///   - limit: the maximum number, 1 or more.
  package func invitations(after id: String? = nil, limit: Int) async throws(StoreFault) -> [Invitation] {
    try await store.invitations(after: id, limit: limit, at: clock.now())
  }

  /// Revokes an invitation. A flow that began with it creates no account either.
  /// - Returns: `unknown` if no invitation has this ID: it was used, was revoked or has expired.
  package func revokeInvitation(_ id: String) async throws(StoreFault) -> Outcome {
    let now = clock.now()
    var line = event(.invitationRevoked, nil, at: now)
    line.detail["invitation"] = id
    switch try await store.apply([.endInvitation(id), .audit(line)], at: now) {
    case .applied: return .done
    case .conflict: return .unknown
    }
  }
}

/// The properties of an invitation to create.
package struct NewInvitation: Sendable {
  package let identifier: Identifier?
  package let groups: [GroupName]
  package let lifetime: Duration
}

extension AccountAdministration {
  /// The maximum number of groups of an invitation.
  private static let maxInvitationGroups = 50

  /// Validates the input of `moongate invite create` and `POST /invitations`.
  /// - Parameters:
  ///   - recipient: the address or number that it is for; nil: anybody.
  ///   - expires: a duration such as `7d`; nil: `InvitationLifetime.standard`.
  ///   - generation: with accounts.lua, which must define the groups with `members()`.
  /// - Throws: the first problem.
  package func newInvitation(
    for recipient: String?, groups: [String], expires: String?, _ generation: any PolicyGeneration
  ) throws(OperatorInputProblem) -> NewInvitation {
    var identifier: Identifier?
    if let recipient {
      identifier = identifiers(named: recipient, region: generation.gateway.region).first { $0.kind.channel != nil }
      guard identifier != nil else {
        throw OperatorInputProblem(
          field: "recipient", sentence: "\"\(recipient.prefix(60))\" is not an email address or a phone number.")
      }
    }
    guard groups.count <= Self.maxInvitationGroups else {
      throw OperatorInputProblem(
        field: "groups", sentence: "An invitation has at most \(Self.maxInvitationGroups) groups.")
    }
    var names: [GroupName] = []
    for text in groups {
      guard let name = GroupName(rawValue: text), generation.accounts.groups[name] == .members else {
        throw OperatorInputProblem(
          field: "groups",
          sentence: "\"\(text.prefix(60))\" is not a group that accounts.lua defines with members().")
      }
      names.append(name)
    }
    var lifetime = InvitationLifetime.standard
    if let expires {
      guard let given = Duration(asWritten: expires), InvitationLifetime.allowed.contains(given) else {
        throw OperatorInputProblem(
          field: "expires",
          sentence: "\"\(expires.prefix(60))\" is not a length of time from 1m to 90d, such as 7d or 12h.")
      }
      lifetime = given
    }
    return NewInvitation(identifier: identifier, groups: names, lifetime: lifetime)
  }
}
