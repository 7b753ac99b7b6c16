import MoongateSDK

/// An invitation of an operator: it lets one account be created.
///
/// Everybody who has the code can use it. If it names an address or a number, the user must verify that. It does
/// nothing for an account that exists.
package struct Invitation: Sendable, Equatable {
  /// Names the invitation for operators. Not a secret.
  package let id: String
  /// The hash of the code.
  package let code: TokenHash
  /// The address or number that the new account must have verified; nil: any.
  package let identifier: Identifier?
  /// The groups of the new account, sorted.
  package let groups: [GroupName]
  package let createdAt: Timestamp
  package let expiresAt: Timestamp
  /// How it ended: `used` or `revoked`. It then names nobody and no groups.
  package var ended: InvitationProblem?

  /// More than five parameters: one for each field.
  package init(
    id: String, code: TokenHash, identifier: Identifier?, groups: [GroupName], createdAt: Timestamp,
    expiresAt: Timestamp
  ) {
    self.id = id
    self.code = code
    self.identifier = identifier
    self.groups = Set(groups).sorted()
    self.createdAt = createdAt
    self.expiresAt = expiresAt
  }

  /// How events name it.
  var detail: [String: String] {
    var detail = ["invitation": id]
    if !groups.isEmpty { detail["groups"] = groups.map(\.rawValue).joined(separator: ", ") }
    return detail
  }

  /// Why it cannot be used; nil if it can.
  package func problem(at now: Timestamp) -> InvitationProblem? { ended ?? (now >= expiresAt ? .expired : nil) }

  /// Whether an account with these verified identifiers may be created by it.
  package func admits(_ verified: [Identifier], at now: Timestamp) -> Bool {
    problem(at: now) == nil && (identifier.map(verified.contains) ?? true)
  }
}

extension PublicURL {
  /// The link of an invitation with this code, which opens the registration.
  package func link(ofInvitation code: SecretText) -> String {
    "\(self)\(PagePath.invitation)?code=\(code.reveal())"
  }
}

/// How long an invitation can be used.
package enum InvitationLifetime {
  package static let standard: Duration = .seconds(7 * 86_400)
  /// How long after its expiry an invitation is remembered, so that its users learn why they cannot use it.
  package static let remembered: Duration = .seconds(30 * 86_400)
  package static let allowed = Duration.seconds(60)...Duration.seconds(90 * 86_400)
}

/// The code of an invitation: `mgi_` followed by 256 random bits in base64url.
package struct InvitationCode: Sendable {
  package let secret: SecretText
  package let hash: TokenHash

  private static let prefix = "mgi_"
  private static let length = 43

  /// A code that a client sent.
  ///
  /// Attack: guessed codes, each of which costs a read of the store. There are 2^256 of them, and a text that cannot be
  /// a code is not looked up.
  /// - Returns: nil if the text cannot be a code.
  package init?(text: String) {
    guard text.utf8.count == Self.prefix.utf8.count + Self.length, text.hasPrefix(Self.prefix) else { return nil }
    self.init(valid: text)
  }

  /// A new code.
  package init(from random: any RandomSource) { self.init(valid: Self.prefix + Base64URL.encode(random.bytes(32))) }

  /// The text without codes of invitations, also those that were cut off.
  static func redacted(_ text: String) -> String {
    text.replacing(/mgi_[A-Za-z0-9_\-]+/, with: prefix + Redaction.mark)
  }

  private init(valid text: String) {
    secret = SecretText(text)
    hash = TokenHash(of: text.utf8)
  }
}
