extension RefusalCode {
  /// What the code means, for an operator who examines a refusal of which nothing else is recorded. `sentence` is the
  /// text for users.
  package var meaning: String {
    switch self {
    case .invalidCode, .invalidPIN, .invalidPassword, .provider: "The provider compared the input, and it was wrong."
    case .oauthFailed: "The other site's answer was not accepted."
    case .oauthCancelled: "The other site answered that the user cancelled."
    case .codeExpired: "The code that was entered is older than its lifetime."
    case .flowExpired: "The flow can no longer be continued: it is too old, or its account has changed."
    case .tooManyAttempts, .sendLimit, .rateLimited: "A limit that belongs to no policy was reached."
    case .resendTooSoon: "The time between two messages has not passed."
    case .accountNotFound: "No account has the identifier, and the policy reveals it (`unknown_account`)."
    case .registrationClosed:
      "accounts.lua closes registration, the flow that creates accounts is off, or no enabled flow does."
    case .invitationRequired:
      "accounts.lua requires an invitation, or a verified address of one of its domains, for a new account."
    case .invitationInvalid:
      "The invitation was used or revoked, has expired, never existed, or names something that was not verified."
    case .flowNotFound: "The client may use no live flow with this id."
    case .alreadyRegistered: "The identifier or identity belongs to an account that this flow may not open."
    case .stepNotOpen: "The flow does not wait for this now."
    case .alreadySet: "The account already has what the flow would add."
    case .noPIN: "The account has no PIN."
    case .invalidPhone, .invalidEmail, .invalidInput: "A field of the request could not be read."
    case .weakPIN, .weakPassword: "The new secret is too easy to guess."
    case .pinMismatch: "The two inputs of the new PIN differ."
    case .denied: "The flow or call is not for this account or client."
    case .forbidden: "The account is in none of the groups that the route requires."
    case .originRefused: "The request's `Origin` is neither public_url nor in `cors_origins`."
    case .disabled: "A credential or the account is turned off."
    case .emailNotVerified: "The account has no verified email address."
    case .stepUpRequired: "The session has no recent enough proof for this."
    case .identifierTooNew: "The identifier was added, or the factor was reset, less than `recovery_delay` ago."
    case .handoffFailed: "The code that carries a sign-in to another root domain was not accepted."
    case .unauthenticated: "The request had no valid credential."
    case .badRequest, .versionNotSupported: "The request is malformed or ambiguous."
    case .notFound, .noRoute: "Nothing has this address."
    case .methodNotAllowed: "The address does not accept this method."
    case .timeout: "The request did not arrive in time."
    case .tooLarge, .headersTooLarge: "The request is larger than its limit."
    case .notJSON: "The body is not JSON."
    case .deliveryFailed: "The message could not be delivered."
    case .policyError: "A function of the configuration failed."
    case .busy: "Too much of this work was running at the time."
    case .storeUnavailable: "The store did not answer, or answered too late."
    case .upstreamUnavailable: "The service behind the gateway did not answer."
    case .upstreamTimeout: "The service behind the gateway answered too late."
    case .policyReason: "A function of the configuration denied it."
    }
  }
}
