import MoongateSDK

/// The ID of a decision: `dc_` followed by 96 random bits in base64url. Every refusal contains it, and
/// `/decisions/{id}` shows the decision.
package struct DecisionID: Hashable, Sendable, Codable, CustomStringConvertible {
  package let text: String

  package init(text: String) { self.text = text }

  package init(from random: any RandomSource) { text = "dc_" + Base64URL.encode(random.bytes(12)) }

  package var description: String { text }
}

/// An event of the audit trail: who did what, and what was decided. Holds no code, PIN, password, token or key, and
/// identifiers only as keyed hashes.
package struct AuditEvent: Sendable, Equatable, Codable {
  package let id: DecisionID
  package let at: Timestamp
  /// From a closed set of names: `flow_begun`, `code_sent`, `code_verified`, `refused`, `session_started`, …
  package let kind: Kind
  package var flow: String?
  /// The first characters of the flow's ID: enough to find related events.
  package var flowPrefix: String?
  package var provider: ProviderName?
  package var account: String?
  /// The identifier's keyed hash (`KeyRing.logHash`).
  package var identifier: String?
  package var address: String?
  /// Where the address is, if a database of `geo` knows it: the country, and the number of the autonomous system.
  package var country: String?
  package var asn: Int?
  /// The code of a refusal.
  package var code: String?
  /// For the operator: the rule and its file:line, counters, and the messages of faults.
  package var detail: [String: String]
  /// For a flood of refusals that are stored as one event: their number. nil for a single event.
  package var count: Int?

  /// The kind of event.
  package enum Kind: String, Sendable, Codable, CaseIterable {
    case flowBegun = "flow_begun"
    case codeSent = "code_sent"
    case deliveryFailed = "delivery_failed"
    case codeVerified = "code_verified"
    case stepSkipped = "step_skipped"
    case refused
    case locked
    case lockLifted = "lock_lifted"
    case accountCreated = "account_created"
    case accountLocked = "account_locked"
    case accountUnlocked = "account_unlocked"
    case accountDisabled = "account_disabled"
    case accountDeleted = "account_deleted"
    /// An operator exported everything that is stored about a user, or all accounts.
    case accountExported = "account_exported"
    /// The user changed the name. The event contains neither name.
    case accountRenamed = "account_renamed"
    case deviceRemoved = "device_removed"
    case accountsImported = "accounts_imported"
    /// An operator added the account to a group, or removed it from one. The group is in the detail.
    case groupAdded = "group_added"
    case groupRemoved = "group_removed"
    case identifierAdded = "identifier_added"
    case identifierChanged = "identifier_changed"
    case identifierRemoved = "identifier_removed"
    /// A recheck found other groups or data of an identity at its site. The groups are in the detail.
    case identityChanged = "identity_changed"
    case factorSet = "factor_set"
    case factorChanged = "factor_changed"
    case factorRemoved = "factor_removed"
    /// Somebody signed in with a secret that attackers know. Whether another one was offered or demanded is in the
    /// detail.
    case secretExposed = "secret_exposed"
    /// A new secret was taken although nobody could say whether attackers know it.
    case secretUnchecked = "secret_unchecked"
    case sessionStarted = "session_started"
    /// A sign-in was transferred to another root domain (`domains`), by the browser that it belongs to.
    case sessionExtended = "session_extended"
    case sessionEnded = "session_ended"
    case tokenCreated = "token_created"
    /// A token was used from a network for the first time.
    case tokenUsed = "token_used"
    case tokenRotated = "token_rotated"
    case tokenRevoked = "token_revoked"
    case tokenExpired = "token_expired"
    /// An operator made or revoked an invitation. Its ID is in the detail.
    case invitationCreated = "invitation_created"
    case invitationRevoked = "invitation_revoked"
    /// The delivery accepted the message with an invitation.
    case invitationSent = "invitation_sent"
    /// A new account used an invitation up.
    case invitationUsed = "invitation_used"
    /// A user signed in to an app. The app and its scopes are in the detail.
    case appAuthorized = "app_authorized"
    /// A user agreed that an app gets the scopes in the detail.
    case appConsented = "app_consented"
    /// An app got new tokens for an authorization.
    case appRefreshed = "app_refreshed"
    /// The tokens of an app ended before their time. The reason is in the detail.
    case appRevoked = "app_revoked"
    /// `require` or `decide` of an app refused a user.
    case appRefused = "app_refused"
    case generationActive = "generation_active"
    case generationRefused = "generation_refused"
    /// An operator requested a reload.
    case reloadRequested = "reload_requested"
    /// An operator started a shadow candidate (`moongate policy shadow`), activated it, or ended it.
    case shadowBegun = "shadow_begun"
    case shadowPromoted = "shadow_promoted"
    case shadowEnded = "shadow_ended"
    /// An operator started a replacement process (`moongate upgrade`), and its result.
    case upgradeRequested = "upgrade_requested"
    case upgradeEnded = "upgrade_ended"
    /// A page reported something that only the browser knows (`client-events`). Its name is in the detail.
    case client

    /// The quota of the audit trail that the event counts against.
    package var quota: AuditQuota {
      switch self {
      case .refused, .appRefused: .refusals
      // A flood can create as many accounts as `register` allows, and rename one any number of times.
      case .flowBegun, .codeSent, .deliveryFailed, .codeVerified, .stepSkipped, .client, .accountCreated,
        .accountRenamed, .deviceRemoved,
        .sessionExtended, .tokenUsed, .secretUnchecked, .appAuthorized, .appRefreshed:
        .activity
      default: .security
      }
    }
  }

  /// More than five parameters: one for each field.
  package init(
    id: DecisionID, at: Timestamp, kind: Kind, flow: String? = nil, flowPrefix: String? = nil,
    provider: ProviderName? = nil, account: String? = nil,
    identifier: String? = nil, address: String? = nil, code: String? = nil, detail: [String: String] = [:]
  ) {
    self.id = id
    self.at = at
    self.kind = kind
    self.flow = flow
    self.flowPrefix = flowPrefix
    self.provider = provider
    self.account = account
    self.identifier = identifier
    self.address = address
    self.code = code
    self.detail = detail
  }

  /// The event with the place of its address, as it is when the event is recorded.
  package func located(by places: (any ClientPlaces)?) -> AuditEvent {
    guard let places, country == nil, asn == nil, let address = address.flatMap({ IPAddressText.parse($0.utf8) })
    else { return self }
    let place = places.place(of: address)
    var event = self
    (event.country, event.asn) = (place.country, place.asn)
    return event
  }

  /// The same JSON as an encoder's, but faster: every refusal of a flood and every step of a sign-in writes one.
  package var json: [UInt8] {
    var name = JSONObjectText()
    name.add("text", id.text)
    var object = JSONObjectText()
    object.add("id", name)
    object.add("at", at.milliseconds)
    object.add("kind", kind.rawValue)
    object.add("flow", flow)
    object.add("flowPrefix", flowPrefix)
    object.add("provider", provider?.rawValue)
    object.add("account", account)
    object.add("identifier", identifier)
    object.add("address", address)
    object.add("country", country)
    object.add("asn", asn)
    object.add("code", code)
    object.add("detail", detail)
    object.add("count", count)
    return object.closed
  }

  /// The event without the user. Used for the events of a deleted user.
  package var anonymous: AuditEvent {
    AuditEvent(id: id, at: at, kind: kind, flow: flow, provider: provider, code: code, detail: [:])
  }
}
