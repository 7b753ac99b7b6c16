import MoongateSDK

/// Why a request was refused. Never contains a fault, and nothing that tells an attacker what was right.
///
/// `RefusalText` has the texts for users; the status follows from the code.
package struct Refusal: Error, Sendable, Equatable {
  package var code: RefusalCode
  /// A sentence for the user to show instead of the code's usual one.
  package var detail: String?
  /// The input field that is at fault, as the client named it.
  package var field: String?
  package var attemptsLeft: Int?
  /// The time from now. Sent as whole seconds, rounded up, at least 1.
  package var retryAfter: Duration?
  package var resendAt: Timestamp?
  /// For `step_up_required`: the provider to pass, and in `flow` how. For `delivery_failed` with a reason: the provider
  /// of the delivery.
  package var provider: ProviderName?
  package var flow: String?
  /// For `forbidden`: the groups, one of which is required.
  package var groups: GroupRequirement?
  /// For `delivery_failed`: why the identifier cannot be reached, if the provider has declared that.
  package var deliveryReason: DeliveryReason?
  /// For `invitation_invalid`: why the invitation cannot be used; nil if no invitation has the code.
  package var invitationProblem: InvitationProblem?
  /// The ID for `/decisions/{id}`.
  package var decision: DecisionID

  /// More than five parameters: one for each field.
  package init(
    _ code: RefusalCode, decision: DecisionID, detail: String? = nil, field: String? = nil, attemptsLeft: Int? = nil,
    retryAfter: Duration? = nil,
    resendAt: Timestamp? = nil, provider: ProviderName? = nil, flow: String? = nil, groups: GroupRequirement? = nil
  ) {
    self.code = code
    self.decision = decision
    self.detail = detail
    self.field = field
    self.attemptsLeft = attemptsLeft
    self.retryAfter = retryAfter
    self.resendAt = resendAt
    self.provider = provider
    self.flow = flow
    self.groups = groups
  }
}

/// The closed set of codes, a policy's own reasons, and providers' own outcomes.
package enum RefusalCode: Hashable, Sendable {
  case invalidCode, invalidPIN, invalidPassword, oauthFailed, oauthCancelled
  case codeExpired, flowExpired
  case tooManyAttempts, resendTooSoon, sendLimit, rateLimited
  case accountNotFound, registrationClosed, invitationRequired, invitationInvalid, flowNotFound
  case alreadyRegistered, stepNotOpen, alreadySet, noPIN
  case invalidPhone, invalidEmail, invalidInput, weakPIN, pinMismatch, weakPassword
  case denied, forbidden, originRefused, disabled, emailNotVerified, stepUpRequired, identifierTooNew, handoffFailed
  case unauthenticated
  case badRequest, notFound, noRoute, methodNotAllowed, versionNotSupported
  case timeout, tooLarge, notJSON, headersTooLarge
  case deliveryFailed, policyError, busy, storeUnavailable, upstreamUnavailable, upstreamTimeout
  /// `deny "reason"` of a policy: 403 with the reason as its code.
  case policyReason(String)
  /// A provider's own declared outcome: 401 with its sentence.
  case provider(Outcome)

  /// The name in the API.
  package var name: String { entry.name }

  /// The HTTP status (RFC 9110 section 15).
  package var status: Int { entry.status }

  /// Whether it means that a code or a secret was compared and was wrong.
  /// - Parameter provider: the descriptor of the provider that was asked.
  package func isWrongAnswer(to provider: ProviderDescriptor?) -> Bool {
    if self == .invalidCode { return true }
    return RefusalReason(rawValue: name).flatMap { provider?.outcome($0) }?.isFailure ?? false
  }

  /// The names of all our own codes. A policy's reason must not be one of them.
  package static let reserved: Set<String> = Set(all.map(\.name))

  /// Our own code with this name; nil for any other text, including a policy's reason.
  package init?(reserved name: String) {
    guard let code = Self.all.first(where: { $0.name == name }) else { return nil }
    self = code
  }

  /// All our own codes. Two have the name `bad_request`: the one with status 505 is for an HTTP version that is not
  /// supported.
  package static let all: [RefusalCode] = [
    .invalidCode, .invalidPIN, .invalidPassword, .oauthFailed, .oauthCancelled, .codeExpired, .flowExpired,
    .tooManyAttempts, .resendTooSoon,
    .sendLimit, .rateLimited, .accountNotFound, .registrationClosed, .invitationRequired, .invitationInvalid,
    .flowNotFound, .alreadyRegistered, .stepNotOpen,
    .alreadySet, .noPIN,
    .invalidPhone, .invalidEmail,
    .invalidInput, .weakPIN, .pinMismatch, .weakPassword, .denied, .forbidden, .originRefused, .disabled,
    .emailNotVerified, .stepUpRequired,
    .identifierTooNew, .handoffFailed,
    .unauthenticated,
    .badRequest, .notFound, .noRoute, .methodNotAllowed, .versionNotSupported, .timeout, .tooLarge, .notJSON,
    .headersTooLarge, .deliveryFailed,
    .policyError, .busy, .storeUnavailable, .upstreamUnavailable, .upstreamTimeout,
  ]

  private var entry: (name: String, status: Int) {
    switch self {
    case .invalidCode: ("invalid_code", 401)
    case .invalidPIN: ("invalid_pin", 401)
    case .invalidPassword: ("invalid_password", 401)
    case .oauthFailed: ("oauth_failed", 401)
    case .oauthCancelled: ("oauth_cancelled", 403)
    case .codeExpired: ("code_expired", 410)
    case .flowExpired: ("flow_expired", 410)
    case .tooManyAttempts: ("too_many_attempts", 429)
    case .resendTooSoon: ("resend_too_soon", 429)
    case .sendLimit: ("send_limit", 429)
    case .rateLimited: ("rate_limited", 429)
    case .accountNotFound: ("account_not_found", 404)
    case .registrationClosed: ("registration_closed", 403)
    case .invitationRequired: ("invitation_required", 403)
    case .invitationInvalid: ("invitation_invalid", 403)
    case .flowNotFound: ("flow_not_found", 404)
    case .alreadyRegistered: ("already_registered", 409)
    case .stepNotOpen: ("step_not_open", 409)
    case .alreadySet: ("already_set", 409)
    case .noPIN: ("no_pin", 409)
    case .invalidPhone: ("invalid_phone", 422)
    case .invalidEmail: ("invalid_email", 422)
    case .invalidInput: ("invalid_input", 422)
    case .weakPIN: ("weak_pin", 422)
    case .pinMismatch: ("pin_mismatch", 422)
    case .weakPassword: ("weak_password", 422)
    case .denied: ("denied", 403)
    case .forbidden: ("forbidden", 403)
    case .originRefused: ("origin_refused", 403)
    case .disabled: ("disabled", 403)
    case .emailNotVerified: ("email_not_verified", 403)
    case .stepUpRequired: ("step_up_required", 403)
    case .identifierTooNew: ("identifier_too_new", 403)
    case .handoffFailed: ("handoff_failed", 403)
    case .unauthenticated: ("unauthenticated", 401)
    case .badRequest: ("bad_request", 400)
    case .notFound: ("not_found", 404)
    case .noRoute: ("no_route", 404)
    case .methodNotAllowed: ("method_not_allowed", 405)
    case .versionNotSupported: ("bad_request", 505)
    case .timeout: ("timeout", 408)
    case .tooLarge: ("too_large", 413)
    case .notJSON: ("not_json", 415)
    case .headersTooLarge: ("headers_too_large", 431)
    case .deliveryFailed: ("delivery_failed", 503)
    case .policyError: ("policy_error", 503)
    case .busy: ("busy", 503)
    case .storeUnavailable: ("store_unavailable", 503)
    case .upstreamUnavailable: ("upstream_unavailable", 502)
    case .upstreamTimeout: ("upstream_timeout", 504)
    case .policyReason(let reason): (reason, 403)
    case .provider(let outcome): (outcome.reason.rawValue, 401)
    }
  }
}
