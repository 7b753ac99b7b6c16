import MoongateSDK

/// Who can create an account: `registration` in accounts.lua. It holds for every flow, provider and entry point. Only
/// an import by an operator is excepted.
package enum RegistrationRule: Sendable, Hashable {
  /// Flows create accounts as they say.
  case open
  /// Only users with an invitation, or with a verified address of one of these domains. The domains are in the form of
  /// `EmailAddress.domain`.
  case invited(domains: Set<String> = [])
  /// No flow creates an account.
  case closed

  /// The words in accounts.lua.
  package enum Word: String, Sendable, CaseIterable {
    case open, invited, closed
  }

  package var word: Word {
    switch self {
    case .open: .open
    case .invited: .invited
    case .closed: .closed
    }
  }

  /// The domains whose users need no invitation, sorted.
  package var domains: [String] { if case .invited(let domains) = self { domains.sorted() } else { [] } }

  /// Why a flow with this rule leads nowhere; nil if it may be begun. It does not depend on the user.
  package func refusal(of rule: AccountRule, isInvited: Bool) -> RefusalCode? {
    guard rule == .new else { return nil }
    return switch self {
    case .open: nil
    case .invited(let domains): isInvited || !domains.isEmpty ? nil : .invitationRequired
    case .closed: .registrationClosed
    }
  }

  /// Why an account with these verified identifiers cannot be created; nil if it can.
  ///
  /// Attack: somebody claims an address of the company and skips the code to it, or has one of a subdomain that
  /// anybody can rent. Only a verified address counts, and only the domain itself.
  /// - Parameter isInvited: whether the flow has an invitation, which is checked by itself.
  package func refusal(ofNew verified: [Identifier], isInvited: Bool) -> RefusalCode? {
    switch self {
    case .open: return nil
    case .closed: return .registrationClosed
    case .invited(let domains):
      let isMember = verified.contains { identifier in
        identifier.kind == .email && EmailAddress(identifier.value).map { domains.contains($0.domain) } ?? false
      }
      return isInvited || isMember ? nil : .invitationRequired
    }
  }

  /// The kinds of identifiers of which an account without an invitation needs a verified one; empty: it needs none.
  package var verifiedKinds: Set<IdentifierKind> {
    guard word == .invited else { return [] }
    return domains.isEmpty ? [.phone, .email] : [.email]
  }

  /// Whether an account without an invitation needs an identifier that was verified.
  package var requiresVerification: Bool { !verifiedKinds.isEmpty }
}
