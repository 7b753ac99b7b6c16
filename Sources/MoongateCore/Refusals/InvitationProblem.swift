/// Why an invitation cannot be used. Only somebody who has its code learns this: a code has 256 random bits, so nobody
/// finds the invitation of somebody else. A code that no invitation has, or that was forgotten, has no such reason.
package enum InvitationProblem: String, Sendable, CaseIterable {
  /// An account was created by it.
  case used
  /// An operator has revoked it.
  case revoked
  case expired
  /// It names an address or a number that the user has not verified.
  case otherRecipient = "other_recipient"

  /// The sentence for the user.
  package var sentence: String {
    switch self {
    case .used: "This invitation was used already. It is good for one account only."
    case .revoked: "This invitation was withdrawn. Please ask for another one."
    case .expired: "This invitation has expired. Please ask for another one."
    case .otherRecipient: "This invitation is for another address or number."
    }
  }
}
